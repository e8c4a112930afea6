package changes

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFlags open a file for reading without waiting, as a fifo would make a process
// wait, and without following a link.
const readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW

// isWhiteout reports whether an entry of an upper directory marks a deleted
// file.
func isWhiteout(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

const opaqueMark = "user.overlay.opaque"

// isOpaque reports whether a directory of an upper directory hides the
// directories of the same name beneath it.
func isOpaque(dir string) bool {
	var value [1]byte
	n := 0
	err := withMode(dir, 0o400, func() (err error) {
		n, err = unix.Lgetxattr(dir, opaqueMark, value[:])
		return err
	})
	return err == nil && n == 1 && value[0] == 'y'
}

// makeOpaque sets what isOpaque reports.
func makeOpaque(dir string) error {
	return withMode(dir, 0o200, func() error { return unix.Lsetxattr(dir, opaqueMark, []byte("y"), 0) })
}

// removeOpaque removes what isOpaque reports.
func removeOpaque(dir string) error { return removeMark(dir, opaqueMark) }

func removeMark(path, name string) error {
	return withMode(path, 0o200, func() error {
		if err := unix.Lremovexattr(path, name); err != nil && err != unix.ENODATA {
			return err
		}
		return nil
	})
}

// withMode runs f. If f lacks a right, it adds bits to the mode of a file of a layer
// and runs f again: a user without rights can read and write attributes only of
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

// makeWhiteout makes an entry that hides the one beneath it. No privilege is
// needed for it since Linux 5.8.
func makeWhiteout(name string) error { return unix.Mknod(name, unix.S_IFCHR, 0) }

// removeMarks removes the attributes that overlayfs has put on an entry. Links
// and devices cannot have any.
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

// identity returns the inode and the time of change, in Unix nanoseconds, by
// which another file and another version are recognized.
func identity(info fs.FileInfo) (ino uint64, changed int64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return stat.Ino, stat.Ctim.Nano()
}

// copyTimes gives a directory the times of another one.
func copyTimes(name string, info fs.FileInfo) error {
	return os.Chtimes(name, info.ModTime(), info.ModTime())
}

// lockFile waits for the lock of a file.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

func crossesDevice(err error) bool { return errors.Is(err, unix.EXDEV) }

// names returns how many names a file has.
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

// nextData returns where the next data of a file, from at on, begins and ends; both
// are size where only a hole is left.
func nextData(f *os.File, at, size int64) (begin, end int64) {
	begin, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if err == unix.ENXIO {
		return size, size
	}
	if err != nil {
		return at, size // the file system knows no holes
	}
	if end, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE); err != nil || end > size {
		end = size
	}
	return min(begin, size), end
}

// copyAttributes copies the attributes of a user. What the other file system does
// not take is left out.
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
