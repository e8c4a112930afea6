package supervise

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// movedError reports that the file of Spec.Pinned with this path is no longer
// there. It is not masked, so no command may be started.
type movedError struct{ path string }

func (e *movedError) Error() string { return fmt.Sprintf("%s is moved meanwhile", e.path) }

// maxMaskAttempts bounds the attempts to mask a file that keeps moving.
const maxMaskAttempts = 2000

// takePassedFiles removes the descriptors of Spec.Undo and Spec.Pinned from the end
// of files, stores them in s, and returns the files of the command.
func (s *Spec) takePassedFiles(files []uintptr) ([]uintptr, error) {
	if s.UndoFiles < 0 || s.UndoFiles > len(files)-2 {
		return nil, fmt.Errorf("%d of %d files", s.UndoFiles, len(files))
	}
	files, s.undoFiles = files[:len(files)-s.UndoFiles], files[len(files)-s.UndoFiles:]
	if s.Held < 0 || s.Held > len(files)-2 {
		return nil, fmt.Errorf("%d of %d files", s.Held, len(files))
	}
	n := len(files) - s.Held
	s.held = files[n:]
	return files[:n], nil
}

// maskPinned masks a file. If the file has moved and its descriptor was passed, it
// looks up the current path and tries again. If the file was removed, it masks the file
// that is at its path now, if any: it may be the next version of the secret. It
// returns a *movedError if the file still is not at its path.
func (s *Spec) maskPinned(p Pinned) error {
	err := mountBlankOverFile(p)
	if p.Held <= 0 || p.Held > len(s.held) {
		return err
	}
	for range maxMaskAttempts {
		moved := (*movedError)(nil)
		if !errors.As(err, &moved) {
			return err
		}
		now, linkErr := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", s.held[p.Held-1]))
		if linkErr != nil {
			return err
		}
		if strings.HasSuffix(now, " (deleted)") && hasNoName(s.held[p.Held-1]) {
			if err = mountBlankOver(p.Path, nil); err == nil {
				return nil
			}
			if _, fault := os.Lstat(p.Path); isMountPointChanged(fault) {
				return nil
			}
			continue
		}
		err = mountBlankOverFile(Pinned{Path: now, Dev: p.Dev, Ino: p.Ino})
	}
	return &movedError{p.Path}
}

// hasNoName reports whether an open file has no hard link any more. The kernel gives
// such a file no name again (linkat(2)), unless it was made with O_TMPFILE. A file system
// in user space may count no links at all, so the result alone proves nothing.
func hasNoName(fd uintptr) bool {
	var info unix.Stat_t
	return unix.Fstat(int(fd), &info) == nil && info.Nlink == 0
}

// mountBlankOverFile mounts a blank over the file at p.Path. It returns a *movedError
// if the file's device and inode are not those in p. The mount belongs to the
// file: it stays on the file if another command then renames it or a directory
// above it.
func mountBlankOverFile(p Pinned) error { return mountBlankOver(p.Path, &p) }

// mountBlankOver mounts a blank over the file at path. It returns a *movedError if there is
// none, or another file than of; of is nil for any file.
func mountBlankOver(path string, of *Pinned) error {
	at, err := openNoLinks(path, unix.O_NOFOLLOW)
	if err != nil {
		if isMountPointChanged(err) || err == unix.ELOOP {
			return &movedError{path}
		}
		return &os.PathError{Op: "mask", Path: path, Err: err}
	}
	defer unix.Close(at)
	var now unix.Stat_t
	if err := unix.Fstat(at, &now); err != nil {
		return &os.PathError{Op: "mask", Path: path, Err: err}
	}
	if of != nil && (int64(now.Dev) != of.Dev || int64(now.Ino) != of.Ino) {
		return &movedError{path}
	}
	over := blankFor(path, now.Mode&unix.S_IFMT == unix.S_IFDIR)
	tree, err := unix.OpenTree(unix.AT_FDCWD, over, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open_tree", Path: over, Err: err}
	}
	defer unix.Close(tree)
	err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if isMountPointChanged(err) { // removed meanwhile
		return &movedError{path}
	}
	if err != nil {
		return &os.PathError{Op: "mask", Path: path, Err: err}
	}
	return nil
}
