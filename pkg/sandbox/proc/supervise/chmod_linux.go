package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// chmod changes the mode of a directory to one with the setgid bit. It refuses
// that bit for files with EPERM.
func (c *callServer) chmod(n *notification) error {
	target, mode, err := c.openModeTarget(n)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	var file unix.Stat_t
	if err := unix.Fstat(target, &file); err != nil {
		return err
	}
	if file.Mode&unix.S_IFMT != unix.S_IFDIR || !c.isPending(n) {
		return unix.EPERM
	}
	return syscall.Chmod(selfPath(target), mode)
}

// openModeTarget opens the file of a chmod, fchmod, fchmodat or fchmodat2 call
// with O_PATH, and returns the new mode.
func (c *callServer) openModeTarget(n *notification) (fd int, mode uint32, err error) {
	if n.number == unix.SYS_FCHMOD {
		fd, err = c.duplicateDescriptor(n, int(int32(n.args[0])))
		return fd, uint32(n.args[1]), err
	}
	dir, address, mode, flags := int(int32(n.args[0])), n.args[1], uint32(n.args[2]), 0
	switch n.number {
	case sysChmod:
		dir, address, mode = unix.AT_FDCWD, n.args[0], uint32(n.args[1])
	case unix.SYS_FCHMODAT2:
		flags = int(uint32(n.args[3]))
	}
	path, err := c.readPath(n, address)
	if err != nil {
		return -1, 0, err
	}
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return -1, 0, unix.EINVAL
	}
	if path == "" && flags&unix.AT_EMPTY_PATH != 0 {
		path = "."
		if dir != unix.AT_FDCWD {
			fd, err = c.duplicateDescriptor(n, dir)
			return fd, mode, err
		}
	}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		fd, err = c.openCallerPath(n, dir, path, unix.O_NOFOLLOW)
	} else {
		fd, err = c.openCallerPath(n, dir, path, 0)
	}
	return fd, mode, err
}
