package writeguard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lifted is a file whose mode is changed temporarily. A command of a plain
// user may have removed its permissions, which keeps out the server as well.
type lifted struct {
	fd       int
	was, now uint32
}

// lift adds bits to the mode of a file that this user owns, until drop. name
// is relative to root. No link is followed.
func lift(root, name string, bits os.FileMode) (*lifted, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, err
	}
	l := &lifted{fd: fd}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
			err = unix.EINVAL
		}
	}
	if err == nil {
		l.was = st.Mode & 0o7777
		l.now = l.was | uint32(bits)
		err = unix.Chmod(l.path(), l.now)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return l, nil
}

// path returns a path to the file itself, whatever has its name by now.
func (l *lifted) path() string { return fmt.Sprintf("/proc/self/fd/%d", l.fd) }

// drop restores the file's mode, unless it was changed since lift, and frees
// the descriptor.
func (l *lifted) drop() {
	var st unix.Stat_t
	if unix.Fstat(l.fd, &st) == nil && st.Mode&0o7777 == l.now {
		unix.Chmod(l.path(), l.was) //nolint:errcheck // on failure it stays accessible to its owner
	}
	unix.Close(l.fd)
}
