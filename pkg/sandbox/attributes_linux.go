package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"golang.org/x/sys/unix"
)

// hasPOSIXOwners is true: files have numeric owners and groups.
const hasPOSIXOwners = true

// openReadWithoutAccessTime opens a file to read its extended attributes. It works for
// a file whose content the process may not read.
func (d *writableDir) openReadWithoutAccessTime(name string) (*os.File, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

const (
	// accessList and capabilities are names of extended attributes (xattr(7)).
	accessList   = "system.posix_acl_access"
	capabilities = "security.capability"
)

// attributesNotCopied lists the extended attributes that list leaves out: those
// that describe the old content (integrity), those that the kernel removes when
// the file is written (capabilities), and the access lists, which
// copyAttributes copies itself.
var attributesNotCopied = []string{capabilities, "security.ima", "security.evm", accessList, "system.posix_acl_default"}

// copyAttributes gives the new file to the owner, mode, access list and extended
// attributes of from, except setuid, setgid and capabilities. why is "" if all were set.
// Otherwise it says what could not be set, and the new file must not replace the old one.
// err reports a full disk or a failed system call.
func copyAttributes(from, to *os.File, _ Stat) (why string, err error) {
	var old, made unix.Stat_t
	if err := errors.Join(unix.Fstat(int(from.Fd()), &old), unix.Fstat(int(to.Fd()), &made)); err != nil {
		return "", err
	}
	if old.Uid != made.Uid || old.Gid != made.Gid {
		switch err := unix.Fchown(int(to.Fd()), int(old.Uid), int(old.Gid)); err {
		case nil:
		case unix.EDQUOT, unix.ENOSPC:
			return "", err
		default:
			return "a new file cannot get its owner and group", nil
		}
	}
	attrs := attributesOf(from)
	names, err := attrs.list()
	if err != nil {
		return "its extended attributes cannot be read", nil
	}
	// Set the access list first: with a list, the group bits of the mode are its mask.
	// The new file may have inherited a list from its directory.
	if !slices.Contains(names, accessList) {
		if err := unix.Fremovexattr(int(to.Fd()), accessList); err != nil && err != unix.ENODATA && err != unix.ENOTSUP {
			return "a new file cannot get its access list", nil
		}
	} else if why, err := attrs.copyTo(accessList, to); why != "" || err != nil {
		return why, err
	}
	if err := unix.Fchmod(int(to.Fd()), old.Mode&(0o777|unix.S_ISVTX)); err != nil {
		return "a new file cannot get its mode", nil
	}
	for _, name := range names {
		if slices.Contains(attributesNotCopied, name) {
			continue
		}
		if why, err := attrs.copyTo(name, to); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// hasCapabilities reports whether running the file gives a process capabilities.
func hasCapabilities(f *os.File) bool {
	names, err := attributesOf(f).list()
	return err == nil && slices.Contains(names, capabilities)
}

// attributes reads the extended attributes of an open file. For a file opened with
// O_PATH it uses the file's path in /proc.
type attributes struct {
	fd   int
	proc string
}

// attributesOf returns the attributes of f, which must stay open.
func attributesOf(f *os.File) attributes {
	a := attributes{fd: int(f.Fd())}
	if procSelfFD() >= 0 {
		a.proc = "/proc/self/fd/" + strconv.Itoa(a.fd)
	}
	return a
}

// list returns the names of the attributes; none if the file system has no attributes.
func (a attributes) list() ([]string, error) {
	data, err := readGrowing(func(buf []byte) (int, error) {
		if a.proc != "" {
			return unix.Listxattr(a.proc, buf)
		}
		return unix.Flistxattr(a.fd, buf)
	})
	if err == unix.ENOTSUP {
		return nil, nil
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), err
}

// get returns the value of the attribute name. It returns unix.ENODATA if the
// file does not have it.
func (a attributes) get(name string) ([]byte, error) {
	return readGrowing(func(buf []byte) (int, error) {
		if a.proc != "" {
			return unix.Getxattr(a.proc, name, buf)
		}
		return unix.Fgetxattr(a.fd, name, buf)
	})
}

// maxAttributeBytes is the kernel's limit for a value and for a list of names, in
// bytes.
const maxAttributeBytes = 64 << 10

// readGrowing repeats call with a larger buffer until the answer fits, up to
// maxAttributeBytes, and returns the answer. call returns its length in bytes,
// as getxattr(2) does.
func readGrowing(call func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := call(buf)
		if err == unix.ERANGE && size < maxAttributeBytes {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}

// copyTo copies one attribute to the file to; nothing if it was removed meanwhile. why
// is not empty if that is not permitted or not supported there. err means that there is
// no space for it.
func (a attributes) copyTo(name string, to *os.File) (why string, err error) {
	why = fmt.Sprintf("a new file cannot get its attribute %s", pathname.Escape(name))
	value, err := a.get(name)
	if err == unix.ENODATA {
		return "", nil // the attribute was removed meanwhile
	}
	if err != nil {
		return why, nil
	}
	if has, err := attributesOf(to).get(name); err == nil && bytes.Equal(has, value) {
		return "", nil
	}
	switch err := unix.Fsetxattr(int(to.Fd()), name, value, 0); err {
	case nil:
		return "", nil
	case unix.ENOSPC, unix.EDQUOT:
		return "", err
	}
	return why, nil
}
