package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// clone is a mount that is kept as it is, apart from the tree.
type clone struct {
	fd       int
	path     string // where it belongs
	readOnly bool
	late     bool // lies in what is made read-only, and is put there afterwards
	root     bool // no link is on the way to it
	temp     bool // it is the private one, to which none is either
	socket   bool
	id       fileID // of a socket
}

// kept are the roots, the directories that may be written and the temporary
// directory, outer ones first, none of them cloned yet.
func (s *Spec) kept() []clone {
	var kept, others []clone
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if !s.Covered(dir) {
			kept = append(kept, clone{path: dir, temp: true})
		}
	}
	covered := func(dir string) bool {
		if len(s.Cover) > 0 {
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
		}
		return slices.ContainsFunc(s.Cover, func(cover string) bool { return cover != dir && Beneath(cover, dir) })
	}
	for _, root := range s.Roots {
		if root.Path != "/" {
			others = append(others, clone{path: root.Path, readOnly: root.ReadOnly, late: covered(root.Path), root: true})
		}
	}
	for _, dir := range s.Shown {
		others = append(others, clone{path: dir, readOnly: true, late: true})
	}
	for _, path := range s.Sockets {
		others = append(others, clone{path: path, readOnly: true, late: covered(path), socket: true})
	}
	for _, dir := range s.writable() {
		late := covered(dir) || slices.ContainsFunc(s.Guard, func(guarded string) bool { return Beneath(guarded, dir) })
		others = append(others, clone{path: dir, late: late, root: dir == s.Temp})
	}
	slices.SortStableFunc(others, func(a, b clone) int { return len(a.path) - len(b.path) })
	return append(kept, others...)
}

// writable returns the directories besides the roots that commands may write.
func (s *Spec) writable() []string {
	if s.Covered("/tmp") { // its own name is the one that it has for the command
		return append(s.Writable[:len(s.Writable):len(s.Writable)], s.Temp)
	}
	return s.Writable
}

// cloneKept clones what is kept. Directories that are not there are left out, but no
// root.
func cloneKept(s *Spec) ([]clone, error) {
	optional := slices.Concat(s.writable(), s.Shown, s.Sockets)
	var made []clone
	for _, c := range s.kept() {
		source := c.path
		if c.temp {
			source = s.Temp
		}
		fd, err := c.open(source)
		if layer := s.layer(c.path); layer != nil && err == nil {
			unix.Close(fd) //nolint:errcheck // a clone that is not used
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
			if c.id, err = socketID(fd); err != nil { // another file has its name now
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

// attach puts the clone where it belongs. A place that the private /tmp or
// /run covers is made anew there.
func (c clone) attach() error {
	defer unix.Close(c.fd)
	if c.path == "/var/tmp" {
		if info, err := os.Lstat(c.path); err != nil || !info.IsDir() {
			return nil
		}
	} else if err := c.makePlace(); err != nil {
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

// makePlace makes what the clone is mounted over, if it is not there.
func (c clone) makePlace() error {
	if !c.socket {
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

// socketID identifies an open socket. It fails for other files.
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

// open clones the tree at source. A command that still runs may put a link into
// the way to a root that lies in another one: it is not followed.
func (c clone) open(source string) (int, error) {
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

// openNoLinks finds a file by a path in which nothing is a link; with
// O_NOFOLLOW it may itself be one.
func openNoLinks(path string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err == unix.ENOSYS { // this thread has its filter already
			return walkNoLinks(path, int(flags))
		}
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// walkNoLinks is openNoLinks, one directory after the other.
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
