package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lock takes the lock of a log, which its supervisor holds until the command has
// ended.
func lock(log string) (unlock func(), err error) {
	f, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return func() {
		sandbox.Unlock(f)
		f.Close() //nolint:errcheck // nothing was written
	}, nil
}

// undoing is an Undo on its way.
type undoing struct {
	*Record
	report  Report
	refuse  func(abs string) string
	roots   map[string]*nofollow.Tree
	data    *os.File
	links   int             // the record's directory
	notHeld map[string]bool // paths
	alias   map[uint64]uint64
}

// Undo takes back what the command changed and removes the record. refuse says why
// a path must not be written, or "": such paths are left alone; nil refuses none.
// CONFLICT where the command still runs or others have changed what it left: then
// nothing is done.
func (r *Record) Undo(refuse func(abs string) string) (Report, error) {
	unlock, err := lock(filepath.Join(r.dir, "log"))
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, notFound(r.ID)
	}
	if err != nil {
		return Report{}, toolerr.New(toolerr.Conflict, "the command of %s still runs: end it, then undo what it changed", r.ID)
	}
	defer unlock()
	steps, stamps, ended, err := r.steps()
	if err != nil {
		return Report{}, err
	}
	u := &undoing{Record: r, refuse: refuse, roots: map[string]*nofollow.Tree{}, notHeld: map[string]bool{}, alias: map[uint64]uint64{}}
	if refuse == nil {
		u.refuse = func(string) string { return "" }
	}
	defer u.close()
	if err := u.open(); err != nil {
		return Report{}, toolerr.New(toolerr.ExecutionError, "the undo record %s cannot be opened: %w", r.ID, err)
	}
	done := u.progress()
	u.report.Unchecked = ended == 0
	if done == 0 && ended != 0 {
		if err := u.check(stamps, ended); err != nil {
			return Report{}, err
		}
	}
	for i := len(steps) - 1 - done; i >= 0; i-- {
		if err := u.take(&steps[i]); err != nil {
			return u.report, toolerr.New(toolerr.ExecutionError, "undo stopped at %s: %w; call it again to go on", sandbox.EscapeName(steps[i].Path), err)
		}
		u.setProgress(len(steps) - i)
	}
	for path := range u.notHeld {
		u.report.NotHeld = append(u.report.NotHeld, path)
	}
	slices.Sort(u.report.NotHeld)
	return u.report, os.RemoveAll(r.dir)
}

func (u *undoing) open() (err error) {
	u.links = -1
	for _, root := range u.Roots {
		if u.roots[root], err = nofollow.Open(root); err != nil {
			delete(u.roots, root)
			return err
		}
	}
	if u.links, err = unix.Open(u.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	u.data, err = os.Open(filepath.Join(u.dir, "data"))
	return err
}

func (u *undoing) close() {
	for _, tree := range u.roots {
		tree.Close() //nolint:errcheck // was opened for paths only
	}
	if u.links >= 0 {
		unix.Close(u.links) //nolint:errcheck // only read
	}
	if u.data != nil {
		u.data.Close() //nolint:errcheck // only read
	}
}

// progress returns how many steps, from the last one on, an interrupted Undo has
// taken back.
func (u *undoing) progress() int {
	text, _ := os.ReadFile(filepath.Join(u.dir, "undone"))
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

func (u *undoing) setProgress(n int) {
	fd, err := unix.Openat(u.links, "undone", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Pwrite(fd, fmt.Appendf(nil, "%12d\n", n), 0) //nolint:errcheck // an interrupted one then repeats a step
		unix.Close(fd)                                    //nolint:errcheck // as above
	}
}

// at opens the directory of a path, without following links.
func (u *undoing) at(path string) (dir int, base string, err error) {
	tree, rel, err := u.treeOf(path)
	if err != nil {
		return -1, "", err
	}
	return tree.Dir(rel)
}

// treeOf returns the root that holds a path, and the path in it.
func (u *undoing) treeOf(path string) (tree *nofollow.Tree, rel string, err error) {
	for root, tree := range u.roots {
		if supervise.Beneath(root, path) {
			rel, err := filepath.Rel(root, path)
			return tree, filepath.ToSlash(rel), err
		}
	}
	return nil, "", errors.New("it is in none of the roots of the command")
}

// stat describes what is at a path; Mode 0: nothing.
func (u *undoing) stat(path string) (state supervise.UndoState) {
	dir, base, err := u.at(path)
	if err != nil {
		return state
	}
	defer unix.Close(dir) //nolint:errcheck // was opened for paths only
	var file unix.Stat_t
	if unix.Fstatat(dir, base, &file, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return state
	}
	state = supervise.StateOf(&file)
	if kind(state.Mode) == unix.S_IFLNK {
		target := make([]byte, unix.PathMax)
		n, _ := unix.Readlinkat(dir, base, target)
		state.Target = string(target[:max(n, 0)])
	}
	return state
}

// hash returns the hash of a file as an UndoStamp has it, "" where it cannot be read.
func (u *undoing) hash(path string) string {
	tree, rel, err := u.treeOf(path)
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

func kind(mode int64) int64 { return mode & unix.S_IFMT }

// mostNamed bounds the paths that an error names.
const mostNamed = 10

// check finds out whether all that the command left is as it was left.
func (u *undoing) check(stamps []supervise.UndoRecord, ended int64) error {
	var names []string
	for i := range stamps {
		path := stamps[i].Path
		if u.refuse(path) != "" {
			continue
		}
		was, is := &stamps[i].Before, u.stat(path)
		switch {
		case is.Mode == 0 && was.Held:
			continue // undo would have removed it
		case was.Mode != is.Mode || was.Target != is.Target:
		case was.Mode == 0 || kind(was.Mode) == unix.S_IFLNK:
			continue
		case kind(was.Mode) == unix.S_IFDIR:
			later := ""
			if was.Held {
				later = u.laterIn(path, ended)
			}
			if later == "" {
				continue
			}
			path = later
		case was.Size == is.Size && (was.Modified == is.Modified || was.Hash != "" && was.Hash == u.hash(path)):
			continue
		}
		names = append(names, sandbox.EscapeName(path))
	}
	if len(names) == 0 {
		return nil
	}
	shown := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if len(names) > mostNamed {
		shown += fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
	return toolerr.New(toolerr.Conflict, "nothing was undone, since others have changed what the command of %s left: %s", u.ID, shown)
}

// laterIn returns a path in a directory that the command made, that was changed
// after the command, "" for none.
func (u *undoing) laterIn(dir string, ended int64) (later string) {
	tree, top, err := u.treeOf(dir)
	if err != nil {
		return ""
	}
	tree.Walk(top, func(rel string, info fs.FileInfo, _ error) bool {
		if info != nil && info.ModTime().UnixNano() > ended {
			later = filepath.Join(dir, strings.TrimPrefix(rel, top))
		}
		return later == ""
	})
	return later
}
