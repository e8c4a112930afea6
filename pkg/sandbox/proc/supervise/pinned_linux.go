package supervise

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// movedError reports a file of Spec.Pinned that is not at its path any more. It is
// not masked then, so nothing may be started.
type movedError struct{ path string }

func (e *movedError) Error() string { return fmt.Sprintf("%s is moved meanwhile", e.path) }

// mostFollows bounds how often a file that is moved all the time is looked for.
const mostFollows = 2000

// takeHeld splits the descriptors of Spec.Undo and of Spec.Pinned off the files of the command.
func (s *Spec) takeHeld(files []uintptr) ([]uintptr, error) {
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

// blankPinned masks a file by its descriptor if it has one, otherwise by its path.
func (s *Spec) blankPinned(p Pinned) error {
	err := blankFile(p)
	if p.Held <= 0 || p.Held > len(s.held) {
		return err
	}
	for range mostFollows {
		moved := (*movedError)(nil)
		if !errors.As(err, &moved) {
			return err
		}
		now, linkErr := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", s.held[p.Held-1]))
		if linkErr != nil {
			return err
		}
		err = blankFile(Pinned{Path: now, Dev: p.Dev, Ino: p.Ino})
	}
	return &movedError{p.Path}
}

// blankFile mounts nothing over a file, by a descriptor whose device and inode are
// those expected. The mount belongs to the file: it stays on it when another command
// renames the file, or a directory above it, afterwards.
func blankFile(p Pinned) error {
	at, err := openNoLinks(p.Path, unix.O_NOFOLLOW)
	if err != nil {
		if changed(err) || err == unix.ELOOP {
			return &movedError{p.Path}
		}
		return &os.PathError{Op: "mask", Path: p.Path, Err: err}
	}
	defer unix.Close(at)
	var now unix.Stat_t
	if err := unix.Fstat(at, &now); err != nil {
		return &os.PathError{Op: "mask", Path: p.Path, Err: err}
	}
	if int64(now.Dev) != p.Dev || int64(now.Ino) != p.Ino {
		return &movedError{p.Path}
	}
	over := blankDir + "/none"
	if now.Mode&unix.S_IFMT == unix.S_IFDIR {
		over += ".dir"
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, over, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open_tree", Path: over, Err: err}
	}
	defer unix.Close(tree)
	err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if changed(err) { // removed since
		return &movedError{p.Path}
	}
	if err != nil {
		return &os.PathError{Op: "mask", Path: p.Path, Err: err}
	}
	return nil
}
