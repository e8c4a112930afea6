package proc

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileIDOf returns the identity of a file. ok is false if info holds no device
// and inode.
func fileIDOf(info os.FileInfo) (id fileID, ok bool) {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{int64(sys.Dev), int64(sys.Ino)}, true
}

// openIdentified opens the file at path without read access. It returns nil if
// the file does not have this identity or cannot be opened. The caller closes
// it.
func openIdentified(path string, id fileID) *os.File {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var now unix.Stat_t
	if unix.Fstat(fd, &now) != nil || (fileID{int64(now.Dev), int64(now.Ino)}) != id {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), path)
}

// currentPath returns the current path of an open file. ok is false if the file
// was deleted.
func currentPath(f *os.File) (path string, ok bool) {
	var now unix.Stat_t
	if unix.Fstat(int(f.Fd()), &now) != nil || now.Nlink == 0 {
		return "", false
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return path, err == nil
}

// duplicateFile returns another descriptor of the same open file, nil on an
// error.
func duplicateFile(f *os.File) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), f.Name())
}
