package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// blankDir holds what is mounted over what must not be seen: an empty file and
// an empty directory that nobody may open, and an empty one that may be listed.
const blankDir = "/dev/.blank"

// arrangeMounts makes the file system that a command at L2 sees: everything
// read-only but the writable roots, a temporary directory of its own, its own
// /dev, /proc of its own processes, an empty /run, and nothing of what is
// masked. All of it goes with the mount name space. It returns the sockets
// outside that may be connected to.
func arrangeMounts(s *Spec) (sockets []fileID, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("private: %w", err)
	}
	// What stays writable is cloned before all else is made read-only.
	clones, err := cloneKept(s)
	if err != nil {
		return nil, err
	}
	for _, c := range clones {
		if c.socket {
			sockets = append(sockets, c.id)
		}
	}
	nodes, err := cloneDevices()
	if err != nil {
		return nil, err
	}
	if err := restrictRoot(s); err != nil {
		return nil, fmt.Errorf("read-only: %w", err)
	}
	if err := mountDev(nodes); err != nil {
		return nil, fmt.Errorf("/dev: %w", err)
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("proc", "/proc", "proc", flags|unix.MS_RDONLY, ""); err != nil {
		return nil, fmt.Errorf("/proc: %w", err)
	}
	if err := mountRun(s, clones, flags); err != nil {
		return nil, fmt.Errorf("/run: %w", err)
	}
	for _, c := range clones {
		if !c.late {
			if err := c.attach(); err != nil {
				return nil, err
			}
		}
	}
	if err := guardFiles(s); err != nil {
		return nil, err
	}
	covers, err := coverDirs(s)
	if err != nil {
		return nil, err
	}
	for _, c := range clones {
		if c.late {
			if err := c.attach(); err != nil {
				return nil, err
			}
		}
	}
	for _, dir := range covers { // not what has been put into it
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return nil, &os.PathError{Op: "cover", Path: dir, Err: err}
		}
	}
	for _, path := range s.Mask {
		if err := blank(path, "none"); err != nil {
			return nil, err
		}
	}
	for _, p := range s.Pinned {
		if err := s.blankPinned(p); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{"/sys/class/net", "/sys/devices/virtual/net"} {
		if err := blank(path, "empty"); err != nil {
			return nil, err
		}
	}
	return sockets, nil
}

// coverDirs mounts an empty directory over each of those that are to be covered
// and exist, and returns them. What comes into one later is not seen either. One that
// is a root is to be seen, and a private /tmp has nothing of the machine's.
func coverDirs(s *Spec) (made []string, err error) {
	for _, dir := range s.Cover {
		info, err := os.Lstat(dir)
		root := slices.ContainsFunc(s.Roots, func(r Root) bool { return r.Path == dir })
		private := (dir == "/tmp" || dir == "/var/tmp") && !s.Covered(dir)
		if err != nil || !info.IsDir() || slices.Contains(made, dir) || root || private || dir == "/" {
			continue
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=64k"); changed(err) {
			continue
		} else if err != nil {
			return nil, &os.PathError{Op: "cover", Path: dir, Err: err}
		}
		made = append(made, dir)
	}
	return made, nil
}

// wholeDisk reports whether / is a root that may be written.
func (s *Spec) wholeDisk() bool {
	return slices.ContainsFunc(s.Roots, func(root Root) bool { return root.Path == "/" && !root.ReadOnly })
}

// restrictRoot makes everything read-only, or if the user insists that all may
// be written, what the kernel shows of itself.
func restrictRoot(s *Spec) error {
	harmless := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !s.wholeDisk() {
		return setMount(unix.AT_FDCWD, "/", harmless|unix.MOUNT_ATTR_RDONLY)
	}
	if err := setMount(unix.AT_FDCWD, "/", harmless); err != nil {
		return err
	}
	for _, path := range []string{"/sys", "/proc"} {
		// Where it is no mount point it is an ordinary directory.
		if err := setMount(unix.AT_FDCWD, path, unix.MOUNT_ATTR_RDONLY); err != nil && !changed(err) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

func setMount(fd int, path string, flags uint64) error {
	at := uint(unix.AT_RECURSIVE)
	if path == "" {
		at |= unix.AT_EMPTY_PATH
	}
	return unix.MountSetattr(fd, path, at, &unix.MountAttr{Attr_set: flags})
}

// blank mounts nothing over a path, if that exists. The path is somebody
// else's to change meanwhile: one that vanishes needs no mask, and one that
// turns from a file into a directory gets the other.
func blank(path, what string) error {
	for tries := 10; ; tries-- {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			return nil // a link leads to what is masked by its own name, or is not
		}
		over := blankDir + "/" + what
		if info.IsDir() && what == "none" {
			over += ".dir"
		}
		err = unix.Mount(over, path, "", unix.MS_BIND, "")
		if err == nil {
			return nil
		}
		if !changed(err) || tries == 0 {
			return &os.PathError{Op: "mask", Path: path, Err: err}
		}
	}
}

// changed reports whether a mount failed because its place was removed, or
// became another kind of file.
func changed(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// guardFiles makes what must not be written read-only. Each directory above it
// up to its root becomes a mount point, too: such a one cannot be renamed, so
// none can be moved away to put another in its place.
func guardFiles(s *Spec) error {
	pinned := map[string]bool{}
	for _, path := range s.Guard {
		root := ""
		for _, r := range s.Roots {
			if Beneath(r.Path, path) && len(r.Path) > len(root) {
				root = r.Path
			}
		}
		if info, err := os.Lstat(path); err != nil || root == "" || path == root || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		if err := guardFile(root, path, pinned); err != nil && !changed(err) {
			return err
		}
	}
	return nil
}

func guardFile(root, path string, pinned map[string]bool) error {
	at := strings.TrimSuffix(root, "/")
	for _, part := range strings.Split(strings.TrimPrefix(path, at+"/"), "/") {
		at += "/" + part
		if at != path && pinned[at] {
			continue
		}
		if err := unix.Mount(at, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "pin", Path: at, Err: err}
		}
		pinned[at] = true
	}
	if err := setMount(unix.AT_FDCWD, path, unix.MOUNT_ATTR_RDONLY); err != nil {
		return &os.PathError{Op: "guard", Path: path, Err: err}
	}
	return nil
}
