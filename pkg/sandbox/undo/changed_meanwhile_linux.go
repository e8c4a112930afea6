package undo

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// stoppedName is the file of a record with what a stopped Undo has found, as UndoSteps:
// an UndoEnd, whose Time is the number of reverted steps and whose Held is partial; an UndoEntry for each path in
// told; an UndoContent for each inode number in inodes; and an UndoStamp for each state
// in known.
const stoppedName = "undone.stopped"

// laterChanges finds files that other programs change while Undo runs, after
// checkUnchanged, and between its calls.
type laterChanges struct {
	stamps  map[string]*supervise.UndoState // states at the end of the command, by path
	touched map[string]bool                 // paths at which Undo has replaced or moved an entry
	inodes  map[int64]bool                  // files that Undo has changed, for their other hard links
	told    map[string]bool                 // changed paths that an earlier call has named: Undo overwrites them
	known   map[int64]supervise.UndoState   // files in the directories that the command made, by inode number
	newDirs map[string]bool                 // paths whose files addFilesOfNewDir has added
	partial bool                            // known lacks files: their time shows whether they are known
	ended   int64                           // the end of the command, in Unix nanoseconds
}

// changedPath is an error that names a path which another program has changed.
type changedPath string

func (changedPath) Error() string { return "another program has changed it in the meantime" }

// newLaterChanges returns the files to look at, whose states are stamps. ended is the
// end of the command, in Unix nanoseconds.
func newLaterChanges(stamps []supervise.UndoStep, ended int64) *laterChanges {
	l := &laterChanges{
		stamps: map[string]*supervise.UndoState{}, touched: map[string]bool{}, inodes: map[int64]bool{},
		told: map[string]bool{}, known: map[int64]supervise.UndoState{}, newDirs: map[string]bool{}, ended: ended,
	}
	for i := range stamps {
		l.stamps[stamps[i].Path] = &stamps[i].Before
	}
	return l
}

// resume reads what earlier calls of Undo have stored, which have reverted the last done
// of the steps.
func (l *laterChanges) resume(u *undoRun, steps []supervise.UndoStep, done int) {
	stoppedAt := -1
	f, err := os.Open(filepath.Join(u.dir, stoppedName))
	if l.partial = err != nil; !l.partial {
		defer f.Close() //nolint:errcheck // only read
		in := bufio.NewReader(f)
		for {
			var next supervise.UndoStep
			if supervise.ReadMessage(in, &next) != nil {
				break
			}
			switch next.Kind {
			case supervise.UndoEnd:
				stoppedAt, l.partial = int(next.Time), next.Before.Held
			case supervise.UndoEntry:
				l.told[next.Path] = true
			case supervise.UndoContent:
				l.inodes[next.Before.Ino] = true
			case supervise.UndoStamp:
				l.known[next.Before.Ino] = next.Before
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
		if steps[i].Kind == supervise.UndoMeta || steps[i].Kind == supervise.UndoContent {
			l.inodes[steps[i].Before.Ino] = true // the path of the step may be gone, and other hard links not
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
	text := supervise.AppendMessage(nil, &supervise.UndoStep{Kind: supervise.UndoEnd, Time: int64(stoppedAt), Before: supervise.UndoState{Held: l.partial}})
	for path := range l.told {
		text = supervise.AppendMessage(text, &supervise.UndoStep{Kind: supervise.UndoEntry, Path: path})
	}
	for ino := range l.inodes {
		text = supervise.AppendMessage(text, &supervise.UndoStep{Kind: supervise.UndoContent, Before: supervise.UndoState{Ino: ino}})
	}
	for _, is := range l.known {
		text = supervise.AppendMessage(text, &supervise.UndoStep{Kind: supervise.UndoStamp, Before: is})
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
	l.addInodes(u, step)
	l.touched[step.Path], l.touched[step.To] = true, true
}

// addInodes adds the inode numbers at the paths of step to those that Undo has changed.
func (l *laterChanges) addInodes(u *undoRun, step *supervise.UndoStep) {
	for _, path := range []string{step.Path, step.To} {
		if path == "" {
			continue
		}
		if is, err := u.stat(path); err == nil && is.Mode != 0 {
			l.inodes[is.Ino] = true
		}
	}
}

// isTouched reports whether Undo has replaced or moved the entry at path or a directory
// above it.
func (l *laterChanges) isTouched(path string) bool { return isInOrBelow(path, l.touched) }

// isInOrBelow reports whether paths contains path or a directory above it.
func isInOrBelow(path string, paths map[string]bool) bool {
	for {
		if paths[path] {
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

// clockStep is longer than the interval at which kernels update the clock for file times.
const clockStep = 20 * time.Millisecond

// addFilesOfNewDir adds the files in the directory at path to u.later, if the directory was
// made between the beginning of the command and ended, its end in Unix nanoseconds: the
// command has made it, but the record does not say so, because the command has also tried to
// exchange it, or a directory above it. Files that were modified later are left out. On a
// file system without times of creation it adds none.
func (u *undoRun) addFilesOfNewDir(path string, ended int64) {
	if isInOrBelow(path, u.later.newDirs) {
		return
	}
	dir, base, err := u.openParent(path)
	if err != nil {
		return
	}
	defer unix.Close(dir) //nolint:errcheck // opened only for paths
	var file unix.Statx_t
	err = unix.Statx(dir, base, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &file)
	born := time.Unix(file.Btime.Sec, int64(file.Btime.Nsec))
	if err != nil || file.Mask&unix.STATX_BTIME == 0 || born.Before(u.Began.Add(-clockStep)) || born.UnixNano() > ended {
		return
	}
	tree, top, err := u.rootTree(path)
	if err != nil {
		return
	}
	u.later.newDirs[path] = true
	now := time.Now().UnixNano()
	tree.Walk(top, func(_ string, info fs.FileInfo, err error) bool {
		if info != nil && err == nil {
			if at := info.ModTime().UnixNano(); at <= ended || at > now {
				u.later.addKnown(info)
			}
		}
		return true
	})
}

// addKnown notes a file in a directory that the command made.
func (l *laterChanges) addKnown(info fs.FileInfo) {
	if file, ok := info.Sys().(*syscall.Stat_t); ok {
		l.known[int64(file.Ino)] = supervise.UndoState{Ino: int64(file.Ino), Size: file.Size, Modified: info.ModTime().UnixNano()}
	}
}

// isKnown reports whether a file in a directory that Undo is about to remove was there
// at the check for conflicts, or comes from Undo. A new file can have the inode number
// of one that Undo has removed, but not its time.
func (l *laterChanges) isKnown(info fs.FileInfo) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	ino, at := int64(file.Ino), info.ModTime().UnixNano()
	is, known := l.known[ino]
	if info.IsDir() {
		return known || l.inodes[ino] || l.partial
	}
	return known && is.Size == file.Size && is.Modified == at ||
		(l.inodes[ino] || l.partial) && (at <= l.ended || at > time.Now().UnixNano())
}

// removeAll removes the entry base of the directory dir, at path. It returns changedPath
// if another program has put a file into the directory path since checkUnchanged. Then it
// has removed nothing, unless the file appeared at the last moment.
func (u *undoRun) removeAll(dir int, base, path string) error {
	tree, top, err := u.rootTree(path)
	if u.later == nil || err != nil {
		return nofollow.RemoveAll(dir, base)
	}
	abs := func(rel string) string { return filepath.Join(path, strings.TrimPrefix(rel, top)) }
	known := func(rel string, info fs.FileInfo) bool {
		return u.later.isTold(abs(rel)) || u.later.isKnown(info)
	}
	var unknown string
	isDir := false
	tree.Walk(top, func(rel string, info fs.FileInfo, _ error) bool {
		switch {
		case info == nil:
		case rel == top:
			isDir = info.IsDir()
		case !known(rel, info):
			unknown = rel
		}
		return unknown == ""
	})
	switch {
	case unknown != "":
	case isDir:
		if unknown, err = tree.RemoveKnown(top, known); err != nil {
			return err
		}
	default:
		return nofollow.RemoveAll(dir, base)
	}
	if unknown != "" {
		return changedPath(abs(unknown))
	}
	return nil
}

// isTold reports whether an earlier call has named path or a directory above it.
func (l *laterChanges) isTold(path string) bool { return isInOrBelow(path, l.told) }
