package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountClone is a detached copy of a mount, which keeps its attributes when the
// tree is restricted.
type mountClone struct {
	fd         int
	path       string // where to attach it
	readOnly   bool
	attachLate bool // attached only after its surroundings have been made read-only
	root       bool // a root: its path contains no link
	temp       bool // the private temporary directory: its path contains no link
	socket     bool
	id         fileID // identity of a socket
}

// mountsToKeep lists the roots, the writable directories and the temporary
// directory, outer directories first. The clones have no descriptor yet:
// cloneMounts opens them.
func (s *Spec) mountsToKeep() []mountClone {
	var kept, others []mountClone
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if !s.IsInsideRoot(dir) {
			kept = append(kept, mountClone{path: dir, temp: true})
		}
	}
	covered := func(dir string) bool {
		if len(s.Cover)+len(s.Shown) > 0 {
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
		}
		contains := func(outer string) bool { return outer != dir && IsBeneath(outer, dir) }
		return slices.ContainsFunc(s.Cover, contains) || slices.ContainsFunc(s.Shown, contains)
	}
	for _, root := range s.Roots {
		if root.Path != "/" {
			others = append(others, mountClone{path: root.Path, readOnly: root.ReadOnly, attachLate: covered(root.Path), root: true})
		}
	}
	for _, dir := range s.Shown {
		others = append(others, mountClone{path: dir, readOnly: true, attachLate: true})
	}
	for _, path := range s.Sockets {
		others = append(others, mountClone{path: path, readOnly: true, attachLate: covered(path), socket: true})
	}
	for _, dir := range s.writableOutsideRoots() {
		late := covered(dir) || slices.ContainsFunc(s.Guard, func(guarded string) bool { return IsBeneath(guarded, dir) })
		others = append(others, mountClone{path: dir, attachLate: late, root: dir == s.Temp})
	}
	slices.SortStableFunc(others, func(a, b mountClone) int { return len(a.path) - len(b.path) })
	return append(kept, others...)
}

// writableOutsideRoots returns the directories outside the roots that commands may write.
func (s *Spec) writableOutsideRoots() []string {
	if s.IsInsideRoot("/tmp") { // the command sees Temp at its own path
		return append(s.Writable[:len(s.Writable):len(s.Writable)], s.Temp)
	}
	return s.Writable
}

// cloneMounts clones the directories of mountsToKeep. It skips missing
// directories, but returns an error for a missing root.
func cloneMounts(s *Spec) ([]mountClone, error) {
	optional := slices.Concat(s.writableOutsideRoots(), s.Shown, s.Sockets)
	var made []mountClone
	for _, c := range s.mountsToKeep() {
		source := c.path
		if c.temp {
			source = s.Temp
		}
		fd, err := c.cloneTree(source)
		if layer := s.layerOver(c.path); layer != nil && err == nil {
			unix.Close(fd) //nolint:errcheck // the clone was not used
			fd, err = layer.mount()
		}
		if errors.Is(err, unix.ENOENT) && slices.Contains(optional, c.path) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open_tree", Path: source, Err: err}
		}
		c.fd = fd
		if c.socket {
			if c.id, err = socketID(fd); err != nil { // the path leads to another file now
				unix.Close(fd)
				continue
			}
		}
		flags := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
		if c.readOnly {
			flags |= unix.MOUNT_ATTR_RDONLY
		}
		if err := setMount(fd, "", flags); err != nil {
			return nil, &os.PathError{Op: "mount_setattr", Path: source, Err: err}
		}
		made = append(made, c)
	}
	return made, nil
}

// attach mounts the clone at c.path. If the private /tmp or /run covers the
// mount point, it creates a new one.
func (c mountClone) attach() error {
	defer unix.Close(c.fd)
	if c.path == "/var/tmp" {
		if info, err := os.Lstat(c.path); err != nil || !info.IsDir() {
			return nil
		}
	} else if err := c.makeMountPoint(); err != nil {
		return err
	}
	at, name, flags := unix.AT_FDCWD, c.path, unix.MOVE_MOUNT_F_EMPTY_PATH
	if c.root {
		var err error
		if at, err = openNoLinks(c.path, 0); err != nil {
			return &os.PathError{Op: "openat2", Path: c.path, Err: err}
		}
		defer unix.Close(at)
		name, flags = "", flags|unix.MOVE_MOUNT_T_EMPTY_PATH
	}
	if err := unix.MoveMount(c.fd, "", at, name, flags); err != nil {
		return &os.PathError{Op: "move_mount", Path: c.path, Err: err}
	}
	return nil
}

// makeMountPoint creates the mount point of the clone, if it does not exist.
func (c mountClone) makeMountPoint() error {
	var info unix.Stat_t
	if err := unix.Fstat(c.fd, &info); err != nil {
		return &os.PathError{Op: "stat", Path: c.path, Err: err}
	}
	if info.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(c.path, 0o700)
	}
	if _, err := os.Lstat(c.path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(c.path, nil, 0o600)
}

// socketID returns the identity of an open socket, ENOTSOCK for other files.
func socketID(fd int) (fileID, error) {
	var file unix.Stat_t
	if err := unix.Fstat(fd, &file); err != nil {
		return fileID{}, err
	}
	if file.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fileID{}, unix.ENOTSOCK
	}
	return fileID{uint64(file.Dev), file.Ino}, nil
}

// cloneTree clones the mount tree at source. It follows no link to a root: a
// command that still runs may replace a directory on the way to a root in
// another root by a link.
func (c mountClone) cloneTree(source string) (int, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	if !c.root && !c.temp {
		return unix.OpenTree(unix.AT_FDCWD, source, flags)
	}
	at, err := openNoLinks(source, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.OpenTree(at, "", flags|unix.AT_EMPTY_PATH)
}

// openNoLinks opens a file with O_PATH by a path without links. With
// O_NOFOLLOW in flags, only the last component may be a link.
func openNoLinks(path string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err == unix.ENOSYS { // this thread already has its filter
			return walkNoLinks(path, int(flags))
		}
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// walkNoLinks is openNoLinks without openat2, with the same results: it opens one
// component after the other.
func walkNoLinks(path string, flags int) (int, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	for i, part := range parts {
		if err != nil || part == "" {
			break
		}
		next, e := unix.Openat(at, part, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		unix.Close(at)
		at, err = next, e
		var file unix.Stat_t
		if err == nil {
			err = unix.Fstat(at, &file)
		}
		last := i == len(parts)-1 && flags&unix.O_NOFOLLOW != 0
		if err == nil && file.Mode&unix.S_IFMT == unix.S_IFLNK && !last {
			err = unix.ELOOP
		}
		if err != nil && at >= 0 {
			unix.Close(at)
			at = -1
		}
	}
	return at, err
}
