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

// hasPOSIXOwners: files have a numeric owner.
const hasPOSIXOwners = true

// openReadWithoutAccessTime opens a file that may not be read, for its attributes.
func (d *parentDir) openReadWithoutAccessTime(name string) (*os.File, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

const (
	accessList   = "system.posix_acl_access"
	capabilities = "security.capability"
)

// attributesNotCopied are attributes that speak of the old content (integrity), or
// that the kernel takes from a file when it is written (capabilities), and
// the access list, which is copied on its own.
var attributesNotCopied = []string{capabilities, "security.ima", "security.evm", accessList, "system.posix_acl_default"}

// copyAttributes gives a new file the owner, the mode, the access list and
// the extended attributes of an old one, but its privileges. Where one of them
// cannot be given, why names it and the new file is no substitute.
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
	// The access list goes first: with one, the mode's group bits are its
	// mask. A new file may have inherited one from its directory.
	if !slices.Contains(names, accessList) {
		if err := unix.Fremovexattr(int(to.Fd()), accessList); err != nil && err != unix.ENODATA && err != unix.ENOTSUP {
			return "a new file cannot get its access list", nil
		}
	} else if why, err := attrs.copy(accessList, to); why != "" || err != nil {
		return why, err
	}
	if err := unix.Fchmod(int(to.Fd()), old.Mode&(0o777|unix.S_ISVTX)); err != nil {
		return "a new file cannot get its mode", nil
	}
	for _, name := range names {
		if slices.Contains(attributesNotCopied, name) {
			continue
		}
		if why, err := attrs.copy(name, to); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// hasCapabilities reports whether whoever runs the file is given some.
func hasCapabilities(f *os.File) bool {
	names, err := attributesOf(f).list()
	return err == nil && slices.Contains(names, capabilities)
}

// attributes reads extended attributes, also of a file that is only held
// with O_PATH: that goes by its entry in /proc.
type attributes struct {
	fd   int
	proc string
}

func attributesOf(f *os.File) attributes {
	a := attributes{fd: int(f.Fd())}
	if procSelfFD() >= 0 {
		a.proc = "/proc/self/fd/" + strconv.Itoa(a.fd)
	}
	return a
}

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

func (a attributes) get(name string) ([]byte, error) {
	return readGrowing(func(buf []byte) (int, error) {
		if a.proc != "" {
			return unix.Getxattr(a.proc, name, buf)
		}
		return unix.Fgetxattr(a.fd, name, buf)
	})
}

// maxAttributeBytes is the kernel's bound of a value and of a list.
const maxAttributeBytes = 64 << 10

// readGrowing calls with a larger buffer while the answer does not fit.
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

// copy gives to one attribute.
func (a attributes) copy(name string, to *os.File) (why string, err error) {
	why = fmt.Sprintf("a new file cannot get its attribute %s", pathname.Escape(name))
	value, err := a.get(name)
	if err == unix.ENODATA {
		return "", nil // gone meanwhile
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
