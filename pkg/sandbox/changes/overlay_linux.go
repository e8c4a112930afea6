package changes

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isWhiteout reports whether an entry of an upper directory marks a deleted
// file.
func isWhiteout(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

// opaqueMark is the attribute of a directory that hides the directories below
// it.
const opaqueMark = "user.overlay.opaque"

// isOpaque reports whether a directory in a layer hides the directories of the
// same path in older layers and in the root.
func isOpaque(dir string) bool {
	var value [1]byte
	n := 0
	err := withModeBits(dir, 0o400, func() (err error) {
		n, err = unix.Lgetxattr(dir, opaqueMark, value[:])
		return err
	})
	return err == nil && n == 1 && value[0] == 'y'
}

// makeOpaque gives dir the mark by which overlayfs hides the directories of the
// same path below it.
func makeOpaque(dir string) error {
	return withModeBits(dir, 0o200, func() error { return unix.Lsetxattr(dir, opaqueMark, []byte("y"), 0) })
}

// removeOpaque removes the mark of makeOpaque.
func removeOpaque(dir string) error { return removeAttribute(dir, opaqueMark) }

// removeAttribute removes the extended attribute name of the file at path. A
// missing attribute is no error.
func removeAttribute(path, name string) error {
	return withModeBits(path, 0o200, func() error {
		if err := unix.Lremovexattr(path, name); err != nil && err != unix.ENODATA {
			return err
		}
		return nil
	})
}

// withModeBits calls f. If f returns EACCES, it adds bits to the mode of the
// file and calls f again: a plain user can read and write attributes only of
// files that the user may read and write.
func withModeBits(path string, bits fs.FileMode, f func() error) error {
	err := f()
	if err != unix.EACCES {
		return err
	}
	info, statErr := os.Lstat(path)
	if statErr != nil || info.Mode()&fs.ModeSymlink != 0 || os.Chmod(path, info.Mode()|bits) != nil {
		return err
	}
	return errors.Join(f(), os.Chmod(path, info.Mode()))
}

// makeWhiteout creates the entry at path name by which overlayfs hides the
// entry of the same path below it (a device 0/0). Since Linux 5.8 that needs no
// privilege.
func makeWhiteout(name string) error { return unix.Mknod(name, unix.S_IFCHR, 0) }

// removeOverlayAttributes removes the attributes that overlayfs has set on an
// entry. Links and devices have none.
func removeOverlayAttributes(path string) error {
	list := make([]byte, 4096)
	n, err := unix.Llistxattr(path, list)
	if err != nil {
		return nil // a file system without attributes, or a link
	}
	for _, name := range strings.Split(string(list[:n]), "\x00") {
		if strings.HasPrefix(name, "user.overlay.") {
			if err := removeAttribute(path, name); err != nil {
				return err
			}
		}
	}
	return nil
}
