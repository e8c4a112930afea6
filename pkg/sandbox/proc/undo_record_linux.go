package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// openDirPath opens a directory with O_PATH, which does not allow to read its
// content. The caller closes it.
func openDirPath(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}
