package undo

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// laterChanges finds files that other programs change while Undo runs, after
// checkUnchanged.
type laterChanges struct {
	stamps  map[string]*supervise.UndoState // states at the end of the command, by path
	touched map[string]bool                 // paths at which Undo has replaced or moved an entry
	inodes  map[int64]bool                  // files that Undo has changed, for their other hard links
}

// newLaterChanges returns the files to look at, whose states are stamps.
func newLaterChanges(stamps []supervise.UndoStep) *laterChanges {
	l := &laterChanges{stamps: map[string]*supervise.UndoState{}, touched: map[string]bool{}, inodes: map[int64]bool{}}
	for i := range stamps {
		l.stamps[stamps[i].Path] = &stamps[i].Before
	}
	return l
}

// find returns a path that the step is about to overwrite and that another program has
// changed since checkUnchanged; "" for none. It looks at files and links which Undo has
// not reached yet. A step that changes only metadata overwrites nothing.
func (l *laterChanges) find(u *undoRun, step *supervise.UndoStep) string {
	if step.Kind == supervise.UndoMeta {
		return ""
	}
	for _, path := range []string{step.Path, step.To} {
		was := l.stamps[path]
		if was == nil || l.isTouched(path) || u.refuse(path) != "" {
			continue
		}
		is, err := u.stat(path)
		if err == nil && !l.inodes[is.Ino] && u.isChanged(path, is, was) {
			return path
		}
	}
	for _, path := range []string{step.Path, step.To} {
		if is, err := u.stat(path); path != "" && err == nil && is.Mode != 0 {
			l.inodes[is.Ino] = true
		}
		l.touched[path] = true
	}
	return ""
}

// isTouched reports whether Undo has replaced or moved the entry at path or a directory
// above it.
func (l *laterChanges) isTouched(path string) bool {
	for {
		if l.touched[path] {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
}

// isChanged reports whether is, the state of the entry at path, shows that another
// program has changed the file or link since its state was was.
func (u *undoRun) isChanged(path string, is supervise.UndoState, was *supervise.UndoState) bool {
	switch {
	case is.Mode == 0:
		return was.Mode != 0 && !was.Held // Undo would remove it anyway
	case fileType(is.Mode) != fileType(was.Mode):
		return true
	case fileType(is.Mode) == unix.S_IFLNK:
		return is.Target != was.Target
	case fileType(is.Mode) != unix.S_IFREG || is.Size == was.Size && is.Modified == was.Modified:
		return false
	}
	return is.Size != was.Size || was.Hash == "" || was.Hash != u.hashPath(path)
}
