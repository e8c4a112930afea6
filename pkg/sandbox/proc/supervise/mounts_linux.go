package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// blankDir holds the objects mounted over hidden files: an empty file and an
// empty directory that nobody may open, an empty directory that may be listed,
// and empty settings that may be read.
const blankDir = "/dev/.blank"

// arrangeMounts sets up the file system that a command at L2 sees. Everything
// is read-only except the writable roots. The command gets a private temporary
// directory, a private /dev, a /proc with only its own processes, and an empty
// /run; masked files are hidden. The mounts disappear with the mount
// namespace. It returns the sockets outside the roots that the command may
// connect to.
func arrangeMounts(s *Spec) (sockets []fileID, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("private: %w", err)
	}
	// Clone the writable directories before everything else is made read-only.
	clones, err := cloneMounts(s)
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
	late := map[string]bool{}
	for _, c := range clones {
		if c.attachLate {
			late[c.path] = true
		} else if err := c.attach(); err != nil {
			return nil, err
		}
	}
	for _, root := range s.Roots {
		if !late[root.Path] {
			if err := guardFiles(s, root.Path); err != nil {
				return nil, err
			}
		}
	}
	if err := coverAndAttach(s, clones); err != nil {
		return nil, err
	}
	for _, path := range s.Mask {
		if err := mountBlank(path, "none"); err != nil {
			return nil, err
		}
	}
	for _, p := range s.Pinned {
		if err := s.maskPinned(p); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{"/sys/class/net", "/sys/devices/virtual/net"} {
		if err := mountBlank(path, "empty"); err != nil {
			return nil, err
		}
	}
	return sockets, nil
}

// coverAndAttach covers the directories of Spec.Cover, and attaches the late clones:
// outer directories first, so that a directory shown in a covered one is visible, and
// one covered in a shown one is not.
func coverAndAttach(s *Spec, clones []mountClone) error {
	dirs := slices.Clone(s.Cover)
	slices.SortStableFunc(dirs, func(a, b string) int { return len(a) - len(b) })
	var made []string
	cover := func(maxLength int) error { // the directories with paths up to maxLength
		for ; len(dirs) > 0 && len(dirs[0]) <= maxLength; dirs = dirs[1:] {
			covered, err := coverDir(s, dirs[0], made)
			if err != nil {
				return err
			}
			if covered {
				made = append(made, dirs[0])
			}
		}
		return nil
	}
	for _, c := range clones {
		if !c.attachLate {
			continue
		}
		err := cover(len(c.path))
		if err == nil {
			err = c.attach()
		}
		if err == nil && c.root {
			err = guardFiles(s, c.path)
		}
		if err != nil {
			return err
		}
	}
	if err := cover(unix.PathMax); err != nil {
		return err
	}
	for _, dir := range made { // but not the directories attached in it
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return &os.PathError{Op: "cover", Path: dir, Err: err}
		}
	}
	return nil
}

// coverDir mounts an empty directory over dir, if that exists, and reports whether it
// did. Files created in it later are hidden too. It skips roots, which must be visible,
// and a private /tmp, which contains no files of the machine.
func coverDir(s *Spec, dir string, made []string) (covered bool, err error) {
	info, err := os.Lstat(dir)
	root := slices.ContainsFunc(s.Roots, func(r Root) bool { return r.Path == dir })
	private := (dir == "/tmp" || dir == "/var/tmp") && !s.IsInsideRoot(dir)
	if err != nil || !info.IsDir() || slices.Contains(made, dir) || root || private || dir == "/" {
		return false, nil
	}
	err = unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=64k")
	if err != nil && !isMountPointChanged(err) {
		return false, &os.PathError{Op: "cover", Path: dir, Err: err}
	}
	return err == nil, nil
}

// isRootDirWritable reports whether / is a writable root.
func (s *Spec) isRootDirWritable() bool {
	return slices.ContainsFunc(s.Roots, func(root Root) bool { return root.Path == "/" && !root.ReadOnly })
}

// restrictRoot makes everything read-only. If / is a writable root, it only
// makes /sys and /proc read-only.
func restrictRoot(s *Spec) error {
	harmless := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !s.isRootDirWritable() {
		return setMount(unix.AT_FDCWD, "/", harmless|unix.MOUNT_ATTR_RDONLY)
	}
	if err := setMount(unix.AT_FDCWD, "/", harmless); err != nil {
		return err
	}
	for _, path := range []string{"/sys", "/proc"} {
		// If the path is no mount point, it is an ordinary directory.
		if err := setMount(unix.AT_FDCWD, path, unix.MOUNT_ATTR_RDONLY); err != nil && !isMountPointChanged(err) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

// setMount sets the attributes flags (MOUNT_ATTR_…) of the mount at path,
// relative to fd, and of all mounts below it. "" means fd itself.
func setMount(fd int, path string, flags uint64) error {
	at := uint(unix.AT_RECURSIVE)
	if path == "" {
		at |= unix.AT_EMPTY_PATH
	}
	return unix.MountSetattr(fd, path, at, &unix.MountAttr{Attr_set: flags})
}

// mountBlank mounts what, an object of blankDir, over path, if that exists.
// Another program may change the path meanwhile: a path that vanishes needs no
// mask, and for a file that becomes a directory the other kind of blank is
// used.
func mountBlank(path, what string) error {
	for tries := 10; ; tries-- {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			return nil // the target of a link is masked by its own path if necessary
		}
		over := blankDir + "/" + what
		if what == "none" {
			over = blankFor(path, info.IsDir())
		}
		err = unix.Mount(over, path, "", unix.MS_BIND, "")
		if err == nil {
			return nil
		}
		if !isMountPointChanged(err) || tries == 0 {
			return &os.PathError{Op: "mask", Path: path, Err: err}
		}
	}
}

// blankFor returns the object to mount over a hidden file or directory. Nobody may open
// it, except that build tools get empty settings: some of them fail if they cannot read
// their settings. isDir says that it is a directory.
func blankFor(path string, isDir bool) string {
	name, above := filepath.Base(path), filepath.Base(filepath.Dir(path))
	switch {
	case isDir:
		return blankDir + "/none.dir"
	case name == ".npmrc" || above == ".gradle" && name == "gradle.properties":
		return blankDir + "/settings"
	case above == ".m2" && name == "settings.xml":
		return blankDir + "/settings.xml"
	case (above == "composer" || above == ".composer") && name == "auth.json":
		return blankDir + "/settings.json"
	}
	return blankDir + "/none"
}

// isMountPointChanged reports whether a mount failed because its mount point was removed
// or became another kind of file.
func isMountPointChanged(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// guardFiles makes the protected files of an attached root read-only. It also makes
// each directory between such a file and the root a mount point. A mount point
// cannot be renamed, so a command cannot move these directories away and
// replace them.
func guardFiles(s *Spec, root string) error {
	pinned := map[string]bool{}
	for _, path := range s.Guard {
		nearest := ""
		for _, r := range s.Roots {
			if IsBeneath(r.Path, path) && len(r.Path) > len(nearest) {
				nearest = r.Path
			}
		}
		if info, err := os.Lstat(path); err != nil || nearest != root || path == root || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		if err := guardFile(root, path, pinned); err != nil && !isMountPointChanged(err) {
			return err
		}
	}
	return nil
}

// guardFile makes path read-only, and makes every directory from root to path
// a mount point. pinned holds the mount points that exist already.
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
