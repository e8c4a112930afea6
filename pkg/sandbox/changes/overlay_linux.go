package changes

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFlags opens a file for reading without following a link, and without
// blocking, as a fifo would.
const readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW

// isWhiteout reports whether an entry of an upper directory marks a deleted
// file.
func isWhiteout(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

const opaqueMark = "user.overlay.opaque"

// isOpaque reports whether a directory in an upper directory hides the
// directories of the same name below it.
func isOpaque(dir string) bool {
	var value [1]byte
	n := 0
	err := withMode(dir, 0o400, func() (err error) {
		n, err = unix.Lgetxattr(dir, opaqueMark, value[:])
		return err
	})
	return err == nil && n == 1 && value[0] == 'y'
}

// makeOpaque marks a directory so that isOpaque returns true.
func makeOpaque(dir string) error {
	return withMode(dir, 0o200, func() error { return unix.Lsetxattr(dir, opaqueMark, []byte("y"), 0) })
}

// removeOpaque removes the mark of makeOpaque.
func removeOpaque(dir string) error { return removeMark(dir, opaqueMark) }

func removeMark(path, name string) error {
	return withMode(path, 0o200, func() error {
		if err := unix.Lremovexattr(path, name); err != nil && err != unix.ENODATA {
			return err
		}
		return nil
	})
}

// withMode runs f. If f returns EACCES, it adds bits to the mode of the file
// for a second call of f: a plain user can read and write attributes only of
// files that the user may read and write.
func withMode(path string, bits fs.FileMode, f func() error) error {
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

// makeWhiteout creates an entry that hides the entry below it. Since Linux 5.8
// that needs no privilege.
func makeWhiteout(name string) error { return unix.Mknod(name, unix.S_IFCHR, 0) }

// removeMarks removes the attributes that overlayfs has set on an entry. Links
// and devices have none.
func removeMarks(path string) error {
	list := make([]byte, 4096)
	n, err := unix.Llistxattr(path, list)
	if err != nil {
		return nil // a file system without attributes, or a link
	}
	for _, name := range strings.Split(string(list[:n]), "\x00") {
		if strings.HasPrefix(name, "user.overlay.") {
			if err := removeMark(path, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// identity returns the inode, which differs for another file, and the time of
// change in Unix nanoseconds, which differs for another version.
func identity(info fs.FileInfo) (ino uint64, changed int64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return stat.Ino, stat.Ctim.Nano()
}

// copyTimes sets the time of modification of a directory to that of another
// one.
func copyTimes(name string, info fs.FileInfo) error {
	return os.Chtimes(name, info.ModTime(), info.ModTime())
}

// lockFile waits until it has the exclusive lock of a file.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

func crossesDevice(err error) bool { return errors.Is(err, unix.EXDEV) }

// names returns the number of hard links of a file, 0 if info is nil or does
// not hold it.
func names(info fs.FileInfo) uint64 {
	if info == nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Nlink)
}

// nextData returns the bounds of the next data of a file, from the offset at
// on. Both are size if only a hole is left.
func nextData(f *os.File, at, size int64) (begin, end int64) {
	begin, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if err == unix.ENXIO {
		return size, size
	}
	if err != nil {
		return at, size // the file system has no holes
	}
	if end, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE); err != nil || end > size {
		end = size
	}
	return min(begin, size), end
}

// copyAttributes copies the user attributes of a file. It skips those that the
// other file system does not accept.
func copyAttributes(to, from *os.File) error {
	list := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(from.Fd()), list)
	if err != nil {
		return nil // a file system without attributes
	}
	value := make([]byte, 64<<10)
	for _, name := range strings.Split(string(list[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "user.overlay.") {
			continue
		}
		size, err := unix.Fgetxattr(int(from.Fd()), name, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value[:size], 0)
		}
		if err != nil && err != unix.EOPNOTSUPP {
			return err
		}
	}
	return nil
}
