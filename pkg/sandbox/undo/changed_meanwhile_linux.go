package undo

import (
	"bufio"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// stoppedName is the file of a record with what a stopped Undo has found, as UndoSteps:
// an UndoEnd, whose Time is the number of reverted steps; an UndoEntry for each path in
// told; and an UndoContent for each inode number in inodes.
const stoppedName = "undone.stopped"

// laterChanges finds files that other programs change while Undo runs, after
// checkUnchanged, and between its calls.
type laterChanges struct {
	stamps  map[string]*supervise.UndoState // states at the end of the command, by path
	touched map[string]bool                 // paths at which Undo has replaced or moved an entry
	inodes  map[int64]bool                  // files that Undo has changed, for their other hard links
	told    map[string]bool                 // changed paths that an earlier call has named: Undo overwrites them
}

// newLaterChanges returns the files to look at, whose states are stamps.
func newLaterChanges(stamps []supervise.UndoStep) *laterChanges {
	l := &laterChanges{stamps: map[string]*supervise.UndoState{}, touched: map[string]bool{}, inodes: map[int64]bool{}, told: map[string]bool{}}
	for i := range stamps {
		l.stamps[stamps[i].Path] = &stamps[i].Before
	}
	return l
}

// resume reads what earlier calls of Undo have stored, which have reverted the last done
// of the steps.
func (l *laterChanges) resume(u *undoRun, steps []supervise.UndoStep, done int) {
	stoppedAt := -1
	if f, err := os.Open(filepath.Join(u.dir, stoppedName)); err == nil {
		defer f.Close() //nolint:errcheck // only read
		in := bufio.NewReader(f)
		for {
			var next supervise.UndoStep
			if supervise.Read(in, &next) != nil {
				break
			}
			switch next.Kind {
			case supervise.UndoEnd:
				stoppedAt = int(next.Time)
			case supervise.UndoEntry:
				l.told[next.Path] = true
			case supervise.UndoContent:
				l.inodes[next.Before.Ino] = true
			}
		}
	}
	if stoppedAt != done {
		done++ // Undo was interrupted in a step, and what this step has written is no change by others
	}
	for i := len(steps) - 1; i >= max(len(steps)-done, 0); i-- {
		if steps[i].Kind != supervise.UndoMeta {
			l.touch(u, &steps[i])
		}
	}
}

// store stores what resume reads. stoppedAt is the number of reverted steps, -1 after a
// failure in the next one. told is the path that the error names, "" for none. After a
// failure of store, the next call stops at the same path.
func (l *laterChanges) store(u *undoRun, stoppedAt int, told string) {
	if told != "" {
		l.told[told] = true
	}
	text := supervise.Append(nil, &supervise.UndoStep{Kind: supervise.UndoEnd, Time: int64(stoppedAt)})
	for path := range l.told {
		text = supervise.Append(text, &supervise.UndoStep{Kind: supervise.UndoEntry, Path: path})
	}
	for ino := range l.inodes {
		text = supervise.Append(text, &supervise.UndoStep{Kind: supervise.UndoContent, Before: supervise.UndoState{Ino: ino}})
	}
	fd, err := unix.Openat(u.recordDir, stoppedName, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), stoppedName)
	f.Write(text) //nolint:errcheck // see above
	f.Close()     //nolint:errcheck // see above
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
		if was == nil || l.told[path] || l.isTouched(path) || u.refuse(path) != "" {
			continue
		}
		is, err := u.stat(path)
		if err == nil && !l.inodes[is.Ino] && u.isChanged(path, is, was) {
			return path
		}
	}
	l.touch(u, step)
	return ""
}

// touch notes that Undo reverts step.
func (l *laterChanges) touch(u *undoRun, step *supervise.UndoStep) {
	for _, path := range []string{step.Path, step.To} {
		if is, err := u.stat(path); path != "" && err == nil && is.Mode != 0 {
			l.inodes[is.Ino] = true
		}
		l.touched[path] = true
	}
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
