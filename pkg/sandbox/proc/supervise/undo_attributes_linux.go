package supervise

import (
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
// made, the entry was made by the caller: attributes that it inherited from its directory
// are removed. SetAttributesAt ignores that an attribute cannot be set.
func SetAttributesAt(dir int, base string, want []UndoAttribute, made bool) {
	if !made && len(want) == 0 {
		return
	}
	path := entryPath(dir, base)
	missing := map[string]string{}
	for _, attribute := range want {
		missing[attribute.Name] = attribute.Value
	}
	for _, is := range AttributesAt(dir, base) {
		switch value, wanted := missing[is.Name]; {
		case wanted && value == is.Value:
			delete(missing, is.Name)
		case !wanted && made:
			unix.Lremovexattr(path, is.Name) //nolint:errcheck // see above
		}
	}
	for name, value := range missing {
		unix.Lsetxattr(path, name, []byte(value), 0) //nolint:errcheck // see above
	}
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
