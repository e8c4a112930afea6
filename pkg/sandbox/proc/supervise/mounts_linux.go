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

// blankDir holds what is mounted over what must not be seen: an empty file and
// an empty directory that nobody may open, and an empty one that may be listed.
const blankDir = "/dev/.blank"

// arrangeMounts makes the file system that a command at L2 sees: everything
// read-only but the writable roots, a temporary directory of its own, its own
// /dev, /proc of its own processes, an empty /run, and nothing of what is
// masked. All of it goes with the mount name space.
func arrangeMounts(s *Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	// What stays writable is cloned before all else is made read-only.
	clones, err := cloneKept(s)
	if err != nil {
		return err
	}
	nodes, err := cloneDevices()
	if err != nil {
		return err
	}
	if err := restrictRoot(s); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	if err := mountDev(nodes); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("proc", "/proc", "proc", flags|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := mountRun(s, clones, flags); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	for _, c := range clones {
		if !c.late {
			if err := c.attach(); err != nil {
				return err
			}
		}
	}
	if err := guardFiles(s); err != nil {
		return err
	}
	covers, err := coverDirs(s)
	if err != nil {
		return err
	}
	for _, c := range clones {
		if c.late {
			if err := c.attach(); err != nil {
				return err
			}
		}
	}
	for _, dir := range covers { // not what has been put into it
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return &os.PathError{Op: "cover", Path: dir, Err: err}
		}
	}
	for _, path := range s.Mask {
		if err := blank(path, "none"); err != nil {
			return err
		}
	}
	for _, path := range []string{"/sys/class/net", "/sys/devices/virtual/net"} {
		if err := blank(path, "empty"); err != nil {
			return err
		}
	}
	return nil
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

// clone is a mount that is kept as it is, apart from the tree.
type clone struct {
	fd       int
	path     string // where it belongs
	readOnly bool
	late     bool // lies in what is made read-only, and is put there afterwards
	root     bool // no link is on the way to it
	temp     bool // it is the private one, to which none is either
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
	for _, dir := range s.writable() {
		late := covered(dir) || slices.ContainsFunc(s.Guard, func(guarded string) bool { return Beneath(guarded, dir) })
		others = append(others, clone{path: dir, late: late, root: dir == s.Temp})
	}
	slices.SortStableFunc(others, func(a, b clone) int { return len(a.path) - len(b.path) })
	return append(kept, others...)
}

// writable are the directories that may be written beside the roots.
func (s *Spec) writable() []string {
	if s.Covered("/tmp") { // its own name is the one that it has for the command
		return append(s.Writable[:len(s.Writable):len(s.Writable)], s.Temp)
	}
	return s.Writable
}

// cloneKept clones what is kept. Directories that are not there are left out, but no
// root.
func cloneKept(s *Spec) ([]clone, error) {
	optional := slices.Concat(s.writable(), s.Shown)
	var made []clone
	for _, c := range s.kept() {
		source := c.path
		if c.temp {
			source = s.Temp
		}
		fd, err := c.open(source)
		if errors.Is(err, unix.ENOENT) && slices.Contains(optional, c.path) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open_tree", Path: source, Err: err}
		}
		c.fd = fd
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
	} else if err := os.MkdirAll(c.path, 0o700); err != nil {
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
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

func setMount(fd int, path string, flags uint64) error {
	at := uint(unix.AT_RECURSIVE)
	if path == "" {
		at |= unix.AT_EMPTY_PATH
	}
	return unix.MountSetattr(fd, path, at, &unix.MountAttr{Attr_set: flags})
}

// cloneDevices clones the mounts of the devices that anybody may use.
func cloneDevices() (fds []int, err error) {
	for _, name := range devices {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, &os.PathError{Op: "open_tree", Path: "/dev/" + name, Err: err}
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// mountDev makes a /dev of the cloned devices, and of the blanks.
func mountDev(nodes []int) error {
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=1m"); err != nil {
		return err
	}
	for i, name := range devices {
		if err := os.WriteFile("/dev/"+name, nil, 0o600); err != nil {
			return err
		}
		if err := unix.MoveMount(nodes[i], "", unix.AT_FDCWD, "/dev/"+name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return &os.PathError{Op: "move_mount", Path: "/dev/" + name, Err: err}
		}
		unix.Close(nodes[i])
	}
	for _, link := range [][2]string{
		{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
		{"pts/ptmx", "ptmx"},
	} {
		if err := os.Symlink(link[0], "/dev/"+link[1]); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm", blankDir, blankDir + "/empty"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Mkdir(blankDir+"/none.dir", 0); err != nil {
		return err
	}
	if err := os.WriteFile(blankDir+"/none", nil, 0); err != nil {
		return err
	}
	// A blank inherits this when it is mounted elsewhere, so that even its
	// owner cannot open it up.
	if err := unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	return unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=25%")
}

// mountRun hides the sockets of the machine's services. What names are
// resolved by is kept for commands that have the network.
func mountRun(s *Spec, clones []clone, flags uintptr) error {
	if info, err := os.Lstat("/run"); err != nil || !info.IsDir() {
		return nil
	}
	var resolver []byte
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	keep := s.Network && err == nil && Beneath("/run", target)
	if keep {
		if resolver, err = os.ReadFile(target); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", flags, "mode=755,size=1m"); err != nil {
		return err
	}
	if keep {
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, resolver, 0o644); err != nil {
			return err
		}
	}
	for _, c := range clones { // their places, while it can be written
		if Beneath("/run", c.path) {
			if err := os.MkdirAll(c.path, 0o700); err != nil {
				return err
			}
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/run", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
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
