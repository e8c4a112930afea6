package writeguard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// addedMode is an open file with permissions that were added for a time. A
// command of a plain user may have removed them, which keeps out the server as
// well.
type addedMode struct {
	fd               int // opened with O_PATH
	oldMode, newMode uint32
}

// addMode adds bits to the mode of a file or directory that this user owns,
// until restore. name is relative to root. No link in name is followed. It returns
// EINVAL for other kinds of files.
func addMode(root, name string, bits os.FileMode) (*addedMode, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	fd := dir
	if name != "." { // even the name "." would need the permission to search root
		defer unix.Close(dir)
		if fd, err = unix.Openat2(dir, name, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
		}); err != nil {
			return nil, err
		}
	}
	l := &addedMode{fd: fd}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
			err = unix.EINVAL
		}
	}
	if err == nil {
		l.oldMode = st.Mode & 0o7777
		l.newMode = l.oldMode | uint32(bits)
		err = unix.Chmod(l.procPath(), l.newMode)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return l, nil
}

// procPath returns the path in /proc/self/fd that leads to the file itself,
// whatever has its name by now.
func (l *addedMode) procPath() string { return fmt.Sprintf("/proc/self/fd/%d", l.fd) }

// restore restores the file's mode, unless it was changed since addMode, and
// closes the file.
func (l *addedMode) restore() {
	var st unix.Stat_t
	if unix.Fstat(l.fd, &st) == nil && st.Mode&0o7777 == l.newMode {
		unix.Chmod(l.procPath(), l.oldMode) //nolint:errcheck // on failure it stays accessible to its owner
	}
	unix.Close(l.fd)
}

// closeWithMode sets the file's permissions for good, and closes the file. Other
// mode bits stay.
func (l *addedMode) closeWithMode(mode os.FileMode) {
	unix.Chmod(l.procPath(), l.oldMode&^0o777|uint32(mode.Perm())) //nolint:errcheck // on failure the permissions of addMode stay
	unix.Close(l.fd)
}
