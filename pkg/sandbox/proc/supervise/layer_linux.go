package supervise

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// layerOver returns the layer over a root, nil if changes go to the root itself.
func (s *Spec) layerOver(root string) *Layer {
	for i := range s.Layers {
		if s.Layers[i].Root == root {
			return &s.Layers[i]
		}
	}
	return nil
}

// mount mounts overlayfs with the layer and returns the detached mount. It
// passes the directories as descriptors: mount options give some characters a
// meaning, and limit a path to 255 bytes.
func (l *Layer) mount() (int, error) {
	if err := l.checkMounts(); err != nil {
		return -1, err
	}
	var lower []string
	for _, dir := range append(l.Lower[:len(l.Lower):len(l.Lower)], l.Root) {
		fd, err := openNoLinks(dir, unix.O_DIRECTORY)
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: dir, Err: err}
		}
		defer unix.Close(fd) //nolint:errcheck // only opened
		lower = append(lower, selfPath(fd))
	}
	upper, err := openNoLinks(l.Upper, unix.O_DIRECTORY)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: l.Upper, Err: err}
	}
	defer unix.Close(upper) //nolint:errcheck // only opened
	work, err := openNoLinks(l.Work, unix.O_DIRECTORY)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: l.Work, Err: err}
	}
	defer unix.Close(work) //nolint:errcheck // only opened

	context, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("overlayfs: %w", err)
	}
	defer unix.Close(context) //nolint:errcheck // only configured
	for _, option := range [][2]string{
		{"source", "changes"}, {"lowerdir", strings.Join(lower, ":")}, {"upperdir", selfPath(upper)}, {"workdir", selfPath(work)},
	} {
		if err := unix.FsconfigSetString(context, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("overlayfs: %s: %w", option[0], withKernelMessage(context, err))
		}
	}
	err = unix.FsconfigSetFlag(context, "userxattr")
	if err == nil {
		err = unix.FsconfigCreate(context)
	}
	if err != nil {
		return -1, fmt.Errorf("overlayfs over %s with changes in %s: %w", l.Root, l.Upper, withKernelMessage(context, err))
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, fmt.Errorf("overlayfs: fsmount: %w", err)
	}
	return fd, nil
}

// withKernelMessage adds the kernel's message in a file system context to an error.
func withKernelMessage(context int, err error) error {
	text := make([]byte, 1024)
	if n, readErr := unix.Read(context, text); readErr == nil && n > 2 {
		return fmt.Errorf("%w (%s)", err, strings.TrimSpace(string(text[2:n])))
	}
	return err
}

// checkMounts returns an error if the root contains a mount: overlayfs would
// show the directory below the mount.
func (l *Layer) checkMounts() error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 4 {
			at := UnescapeMount(fields[4])
			if at != l.Root && IsBeneath(l.Root, at) {
				return errors.New("changes cannot be kept apart in " + l.Root + ": it holds the mount " + at)
			}
		}
	}
	return nil
}

// UnescapeMount decodes the octal escapes in a path of /proc/PID/mountinfo, see
// proc_pid_mountinfo(5).
func UnescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
