package supervise

import (
	"encoding/binary"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAttributeBytes bounds the list of a file's attributes, and each of their values.
// The kernel has the same bound.
const maxAttributeBytes = 64 << 10

// AttributesAt returns the extended attributes of the entry base of the directory dir
// that undo restores. It does not follow a link. It returns none on an error.
func AttributesAt(dir int, base string) []UndoAttribute { return attributesOf(entryPath(dir, base)) }

// attributesOf returns the attributes of the entry at path, as AttributesAt does.
func attributesOf(path string) (attributes []UndoAttribute) {
	var few [256]byte
	names := few[:]
	n, err := unix.Llistxattr(path, names)
	if err == unix.ERANGE {
		names = make([]byte, maxAttributeBytes)
		n, err = unix.Llistxattr(path, names)
	}
	if err != nil || n <= 0 {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if !isRestored(name) {
			continue
		}
		value := few[:]
		n, err := unix.Lgetxattr(path, name, value)
		if err == unix.ERANGE {
			value = make([]byte, maxAttributeBytes)
			n, err = unix.Lgetxattr(path, name, value)
		}
		if err == nil {
			attributes = append(attributes, UndoAttribute{Name: name, Value: string(value[:n])})
		}
	}
	return attributes
}

// SetAttributesAt gives the entry base of the directory dir the attributes of want. With
// isNew, the entry was made by the caller: attributes that it inherited from its directory
// are removed. SetAttributesAt ignores that an attribute cannot be set. isPartial means that
// it has set an access list without the entries of users whom the recorder did not know.
func SetAttributesAt(dir int, base string, want []UndoAttribute, isNew bool) (isPartial bool) {
	if !isNew && len(want) == 0 {
		return false
	}
	path := entryPath(dir, base)
	missing := map[string]string{}
	for _, attribute := range want {
		missing[attribute.Name] = attribute.Value
	}
	for _, is := range AttributesAt(dir, base) {
		switch value, wanted := missing[is.Name]; {
		case wanted && (value == is.Value || isSameAccess(is.Name, value, is.Value)):
			delete(missing, is.Name)
		case !wanted && isNew:
			unix.Lremovexattr(path, is.Name) //nolint:errcheck // see above
		}
	}
	for name, value := range missing {
		known := withoutUnknownUsers(name, value)
		isPartial = isPartial || known != value
		unix.Lsetxattr(path, name, []byte(known), 0) //nolint:errcheck // see above
	}
	return isPartial
}

// An access list, as the value of an attribute, has a header of 4 bytes and entries of 8
// bytes: the tag and the permissions, of 2 bytes each, and the id of a user or group (see
// linux/posix_acl_xattr.h). In a user namespace, the ids of others are unknownID.
const (
	accessHeaderBytes = 4
	accessEntryBytes  = 8
	accessTagUser     = 0x02
	accessTagGroup    = 0x08
	unknownID         = ^uint32(0)
)

// isAccessList reports whether value is an access list, the value of an attribute called
// name.
func isAccessList(name, value string) bool {
	return strings.HasPrefix(name, "system.posix_acl_") && len(value) >= accessHeaderBytes && (len(value)-accessHeaderBytes)%accessEntryBytes == 0
}

// namesUnknown reports whether an entry of an access list names a user or group that the
// recorder did not know.
func namesUnknown(entry string) bool {
	tag := binary.LittleEndian.Uint16([]byte(entry))
	return (tag == accessTagUser || tag == accessTagGroup) && binary.LittleEndian.Uint32([]byte(entry[4:])) == unknownID
}

// withoutUnknownUsers returns the value of an attribute without the entries of an access
// list that namesUnknown reports: the kernel does not accept them.
func withoutUnknownUsers(name, value string) string {
	if !isAccessList(name, value) {
		return value
	}
	known := value[:accessHeaderBytes]
	for at := accessHeaderBytes; at < len(value); at += accessEntryBytes {
		if entry := value[at : at+accessEntryBytes]; !namesUnknown(entry) {
			known += entry
		}
	}
	return known
}

// isSameAccess reports whether the access list is can be the recorded list was, in which
// users and groups may be unknown.
func isSameAccess(name, was, is string) bool {
	if !isAccessList(name, was) || len(was) != len(is) || was[:accessHeaderBytes] != is[:accessHeaderBytes] {
		return false
	}
	for at := accessHeaderBytes; at < len(was); at += accessEntryBytes {
		recorded, present := was[at:at+accessEntryBytes], is[at:at+accessEntryBytes]
		if namesUnknown(recorded) {
			recorded, present = recorded[:4], present[:4]
		}
		if recorded != present {
			return false
		}
	}
	return true
}

// isRestored reports whether undo restores attributes of this name. The others belong to
// the kernel or to security modules.
func isRestored(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_") || name == "security.capability"
}

// entryPath returns a path by which calls without a directory descriptor reach the entry
// base of the directory dir.
func entryPath(dir int, base string) string {
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + base
}
