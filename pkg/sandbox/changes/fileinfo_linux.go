package changes

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFlags opens a file for reading without following a link, and without
// blocking, as a fifo would.
const readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW

// inodeAndChangeTime returns the inode, which differs for another file, and the
// time of change in Unix nanoseconds, which differs for another version. Both
// are 0 if info does not hold them.
func inodeAndChangeTime(info fs.FileInfo) (ino uint64, changed int64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return stat.Ino, stat.Ctim.Nano()
}

// copyModTime sets the time of modification of the directory called name to
// that in info.
func copyModTime(name string, info fs.FileInfo) error {
	return os.Chtimes(name, info.ModTime(), info.ModTime())
}

// waitForLock takes the exclusive lock (flock) of an open file, and waits until
// it is free.
func waitForLock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// isCrossDevice reports whether a rename failed because the paths are on
// different file systems (EXDEV).
func isCrossDevice(err error) bool { return errors.Is(err, unix.EXDEV) }

// linkCount returns the number of hard links of a file; 0 if info is nil or
// does not hold it.
func linkCount(info fs.FileInfo) uint64 {
	if info == nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Nlink)
}

// nextData returns the bounds of the next part of a file that is not a hole, at
// or after the offset at. Both are size if only a hole is left. A file system
// without holes gives at and size.
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
