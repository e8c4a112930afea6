package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lockLog takes the lock of the log file at path log. It fails while the
// command's supervisor runs, which holds the lock.
func lockLog(log string) (unlock func(), err error) {
	f, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return func() {
		filelock.Unlock(f)
		f.Close() //nolint:errcheck // nothing was written
	}, nil
}

// undoRun is the state of a running Undo.
type undoRun struct {
	*Record
	report     Report
	refuse     func(abs string) string
	roots      map[string]*nofollow.Tree
	data       *os.File
	later      *laterChanges      // nil if the end of the command was not recorded
	recordDir  int                // descriptor of the record's directory
	notHeld    map[string]bool    // paths
	lostAccess map[string]bool    // paths
	aliases    map[fileKey]uint64 // files that Undo has made, and the inode numbers of those that they replace
}

// fileKey names a file by device and inode number. Device 0 means that it is not known.
type fileKey struct{ dev, ino uint64 }

// Undo reverts the changes of the command and removes the record. refuse returns the
// reason why a path must not be written, or ""; Undo skips such paths. A nil refuse
// refuses none. Undo changes nothing and returns a CONFLICT error if the command is
// still running, or if somebody else has changed the files since. If that happens while
// Undo runs, it stops with CONFLICT; another call goes on and overwrites that change, but
// no other one. It returns EXECUTION_ERROR if a step fails; another call continues with
// this step.
func (r *Record) Undo(refuse func(abs string) string) (Report, error) {
	unlock, err := lockLog(filepath.Join(r.dir, "log"))
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, notFound(r.ID)
	}
	if err != nil {
		return Report{}, toolerr.New(toolerr.Conflict, "the command of %s still runs: end it, then undo its changes", r.ID)
	}
	defer unlock()
	steps, stamps, ended, err := r.steps()
	if err != nil {
		return Report{}, err
	}
	u := &undoRun{Record: r, refuse: refuse, roots: map[string]*nofollow.Tree{}}
	if refuse == nil {
		u.refuse = func(string) string { return "" }
	}
	defer u.close()
	if err := u.open(); err != nil {
		return Report{}, toolerr.New(toolerr.ExecutionError, "the undo record %s cannot be opened: %w", r.ID, err)
	}
	done, began := u.readProgress()
	u.report.Unchecked = ended == 0
	if ended != 0 {
		u.later = newLaterChanges(stamps, ended)
		if began {
			u.later.resume(u, steps, done)
		} else if err := u.checkUnchanged(stamps, ended); err != nil {
			return Report{}, err
		}
	}
	u.writeProgress(done) // if the first step is interrupted, what it has written is no change by others
	for i := len(steps) - 1 - done; i >= 0; i-- {
		if err := u.revertUnchanged(&steps[i], len(steps)-1-i); err != nil {
			return u.report, err
		}
		u.writeProgress(len(steps) - i)
	}
	u.report.NotHeld = slices.Sorted(maps.Keys(u.notHeld))
	u.report.LostAccess = slices.Sorted(maps.Keys(u.lostAccess))
	u.shareAliases()
	return u.report, removeRecord(r.dir)
}

// revertUnchanged reverts step, after which the last done steps were reverted, unless
// another program has changed what it is about to overwrite.
func (u *undoRun) revertUnchanged(step *supervise.UndoStep, done int) error {
	if u.later == nil {
		if err := u.revertStep(step); err != nil {
			return stepFailed(step, err)
		}
		return nil
	}
	changed := changedPath(u.later.find(u, step))
	if changed == "" {
		err := u.revertStep(step)
		if err == nil {
			u.later.addInodes(u, step) // of what the step has made
			return nil
		}
		if !errors.As(err, &changed) {
			u.later.store(u, -1, "")
			return stepFailed(step, err)
		}
	}
	u.later.store(u, done, string(changed))
	return toolerr.New(toolerr.Conflict, "undo stopped at %s, because another program has changed it in the meantime; part of the changes is undone; call undo again to undo the rest and overwrite that change", pathname.Escape(string(changed)))
}

// stepFailed returns the EXECUTION_ERROR for a step that err has stopped.
func stepFailed(step *supervise.UndoStep, err error) error {
	return toolerr.New(toolerr.ExecutionError, "undo stopped at %s: %w; call undo again to continue", pathname.Escape(step.Path), err)
}

// open opens the roots and the files of the record. After an error, close closes what
// was opened.
func (u *undoRun) open() (err error) {
	u.recordDir = -1
	for _, root := range u.Roots {
		if u.roots[root], err = nofollow.Open(root); err != nil {
			delete(u.roots, root)
			return err
		}
	}
	if u.recordDir, err = unix.Open(u.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	u.data, err = os.Open(filepath.Join(u.dir, "data"))
	return err
}

// close closes what open opened, also after an error of open.
func (u *undoRun) close() {
	for _, tree := range u.roots {
		tree.Close() //nolint:errcheck // opened only for paths
	}
	if u.recordDir >= 0 {
		unix.Close(u.recordDir) //nolint:errcheck // only read
	}
	if u.data != nil {
		u.data.Close() //nolint:errcheck // only read
	}
}

// openParent opens the directory of a path without following links. The caller closes
// dir.
func (u *undoRun) openParent(path string) (dir int, base string, err error) {
	tree, rel, err := u.rootTree(path)
	if err != nil {
		return -1, "", err
	}
	return tree.OpenParent(rel)
}

// rootTree returns the opened root that contains path, and path relative to it.
// It returns an error for a path in no root of the command.
func (u *undoRun) rootTree(path string) (tree *nofollow.Tree, rel string, err error) {
	for root, tree := range u.roots {
		if supervise.IsBeneath(root, path) {
			rel, err := filepath.Rel(root, path)
			return tree, filepath.ToSlash(rel), err
		}
	}
	return nil, "", errors.New("it is in none of the roots of the command")
}

// stat returns the state of the file at path. Mode 0 means that no file exists.
// It returns EACCES if the directory cannot be entered.
func (u *undoRun) stat(path string) (state supervise.UndoState, err error) {
	dir, base, err := u.openParent(path)
	if errors.Is(err, unix.EACCES) {
		return state, err
	}
	if err != nil {
		return state, nil
	}
	defer unix.Close(dir) //nolint:errcheck // opened only for paths
	var file unix.Stat_t
	if err := unix.Fstatat(dir, base, &file, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if err == unix.EACCES {
			return state, err
		}
		return state, nil
	}
	state = supervise.StateOf(&file)
	if fileType(state.Mode) == unix.S_IFLNK {
		target := make([]byte, unix.PathMax)
		n, _ := unix.Readlinkat(dir, base, target)
		state.Target = string(target[:max(n, 0)])
	}
	return state, nil
}

// hashPath returns the hash of a file as in an UndoStamp, "" if the file cannot be
// read.
func (u *undoRun) hashPath(path string) string {
	tree, rel, err := u.rootTree(path)
	if err != nil {
		return ""
	}
	f, err := tree.OpenFile(rel)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	return supervise.HashOf(f)
}

// isSameVersion reports whether info describes the recorded file, not changed
// since: inode and time of change are equal.
func isSameVersion(info fs.FileInfo, was *supervise.UndoState) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(file.Ino) == was.Ino && file.Ctim.Nano() == was.Changed
}

// fileType returns the type bits of st_mode.
func fileType(mode int64) int64 { return mode & unix.S_IFMT }

// maxNamedPaths bounds the paths named in an error.
const maxNamedPaths = 10

// checkUnchanged returns a CONFLICT error if a file was changed since the end of the
// command. stamps are the states of the files at that time, and ended is the time in Unix
// nanoseconds.
func (u *undoRun) checkUnchanged(stamps []supervise.UndoStep, ended int64) error {
	var names []string
	for i := range stamps {
		path := stamps[i].Path
		if u.refuse(path) != "" {
			continue
		}
		was := &stamps[i].Before
		is, err := u.stat(path)
		switch {
		case errors.Is(err, unix.EACCES):
			u.later.partial = true
			continue // the command has closed the directory, and Undo opens it
		case is.Mode == 0 && was.Held:
			continue // Undo would remove it anyway
		case was.Mode != is.Mode || was.Target != is.Target || u.hasOtherAttributes(path, was):
		case was.Mode == 0 || fileType(was.Mode) == unix.S_IFLNK:
			continue
		case fileType(was.Mode) == unix.S_IFDIR:
			later := ""
			if was.Held {
				later = u.findLaterChange(path, ended)
			} else {
				u.addFilesOfNewDir(path, ended)
			}
			if later == "" {
				continue
			}
			path = later
		case was.Size == is.Size && (was.Modified == is.Modified || was.Hash != "" && was.Hash == u.hashPath(path)):
			continue
		}
		names = append(names, pathname.Escape(path))
	}
	if len(names) == 0 {
		return nil
	}
	shown := strings.Join(names[:min(len(names), maxNamedPaths)], ", ")
	if len(names) > maxNamedPaths {
		shown += fmt.Sprintf(" and %d more", len(names)-maxNamedPaths)
	}
	return toolerr.New(toolerr.Conflict, "nothing was undone, because other programs have changed files since the command of %s: %s", u.ID, shown)
}

// hasOtherAttributes reports whether the entry at path has other attributes user.* than
// was, its state at the end of the command. It returns false if these are not recorded. The
// values of others can look different in the command's namespace.
func (u *undoRun) hasOtherAttributes(path string, was *supervise.UndoState) bool {
	isRemoved := was.Held || fileType(was.Mode) == unix.S_IFREG // Undo changes no attributes of other directories
	if !u.stampsHaveAttributes || was.Mode == 0 || fileType(was.Mode) == unix.S_IFLNK || !isRemoved {
		return false
	}
	dir, base, err := u.openParent(path)
	if err != nil {
		return false
	}
	defer unix.Close(dir) //nolint:errcheck // opened only for paths
	return !slices.Equal(ownAttributes(supervise.AttributesAt(dir, base)), ownAttributes(was.Attributes))
}

// ownAttributes returns the attributes user.* of a list.
func ownAttributes(list []supervise.UndoAttribute) (own []supervise.UndoAttribute) {
	for _, a := range list {
		if strings.HasPrefix(a.Name, "user.") {
			own = append(own, a)
		}
	}
	return own
}

// findLaterChange returns the path of a file in dir that was modified after ended, in
// Unix nanoseconds; "" if none was. dir was made by the command. It adds the files that
// it visits to u.later, and sets u.later.partial if some cannot be read. These count as
// unchanged, as does a time in the future, because a change now would set the current
// time.
func (u *undoRun) findLaterChange(dir string, ended int64) (later string) {
	tree, top, err := u.rootTree(dir)
	if err != nil {
		return ""
	}
	now := time.Now().UnixNano()
	tree.Walk(top, func(rel string, info fs.FileInfo, err error) bool {
		if info == nil || err != nil {
			u.later.partial = true
			return true
		}
		u.later.addKnown(info)
		if at := info.ModTime().UnixNano(); at > ended && at <= now {
			later = filepath.Join(dir, strings.TrimPrefix(rel, top))
		}
		return later == ""
	})
	return later
}
