package supervise

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// cloneDevices returns detached clones of the mounts of devices, in that order.
// The caller closes them.
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

// mountDev mounts a new /dev. It has the devices of nodes, the result of
// cloneDevices, the links to open files, pts, shm, and the empty files and
// directories of blankDir, which later mounts put over hidden files. It closes
// nodes; after an error, those not yet mounted stay open.
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
	for name, text := range map[string]string{"settings": "", "settings.xml": "<settings/>\n", "settings.json": "{}\n"} {
		if err := os.WriteFile(blankDir+"/"+name, []byte(text), 0o444); err != nil {
			return err
		}
	}
	// Mounts of a blank inherit this attribute, so that not even its owner can
	// make it accessible.
	if err := unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	return unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=25%")
}

// mountRun mounts an empty /run, which hides the sockets of the machine's
// services. For commands with network access it keeps the file that resolv.conf
// leads to.
func mountRun(s *Spec, clones []mountClone, flags uintptr) error {
	if info, err := os.Lstat("/run"); err != nil || !info.IsDir() {
		return nil
	}
	var resolver []byte
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	keep := s.Network && err == nil && IsBeneath("/run", target)
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
	for _, c := range clones { // create the mount points while /run is writable
		if IsBeneath("/run", c.path) {
			if err := c.makeMountPoint(); err != nil {
				return err
			}
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/run", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
