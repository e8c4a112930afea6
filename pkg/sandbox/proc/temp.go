package proc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// The private temporary directories of a runner's commands are in one
// directory of Config.TempDir. That directory has runPrefix and contains a
// file that the runner keeps locked. The kernel releases the lock when the
// process ends, so later runners know which directories are unused.
const (
	runPrefix = "toolroom-run-"
	lockName  = "lock"
)

// unlockedFor is the age at which a directory without a locked file counts as
// left behind. A younger one may be in the making.
const unlockedFor = time.Minute

// mostStale bounds the names checked for directories left behind.
const mostStale = 10_000

// runDir is a runner's directory. A command's root may contain it, so commands
// can replace directories on the way to its files by links. Therefore it is
// used by its descriptor, and its path is used only where links are not
// followed.
type runDir struct {
	base *os.Root // Config.TempDir
	root *os.Root
	path string // contained no link when it was made
	lock *os.File
	next int
}

// privateTemp is the private temporary directory of a command.
type privateTemp struct {
	root *os.Root // the runner's directory
	name string   // the name in root
	path string
}

// inside returns the path at which a command sees the directory. covered means
// that the command sees all of /tmp.
func (t privateTemp) inside(covered bool, level Level) string {
	if level == L2 && !covered {
		return "/tmp"
	}
	return t.path
}

// makeTemp returns a private temporary directory, a prepared one if possible.
func (r *Runner) makeTemp() (privateTemp, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return privateTemp{}, errEnding()
	}
	for len(r.temps) > 0 {
		temp := r.temps[0]
		r.temps = slices.Delete(r.temps, 0, 1)
		if info, err := temp.root.Lstat(temp.name); err == nil && info.IsDir() && temp.root == r.run.root && r.run.there() { // otherwise somebody has removed it
			return temp, nil
		}
	}
	return r.newTemp()
}

// addTemps prepares as many directories as there are waiting supervisors. If
// the last command had a prologue, it also makes the report file, since that
// takes longer than to write it.
func (r *Runner) addTemps() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && len(r.temps) < maxPrestarted {
		temp, err := r.newTemp()
		if err != nil { // the next command reports it
			return
		}
		if r.reports {
			temp.write(reportName, "") //nolint:errcheck // otherwise the prologue makes it
		}
		r.temps = append(r.temps, temp)
	}
}

// write makes a file in the directory. It replaces a file that a command may
// have made.
func (t privateTemp) write(name, text string) error {
	name = filepath.Join(t.name, name)
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := t.root.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		t.root.RemoveAll(name) //nolint:errcheck // on failure the next open fails too
		f, err = t.root.OpenFile(name, flags, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// remove removes the directory with its content.
func (t privateTemp) remove() { removeTree(t.root, t.name) }

// newTemp makes a private temporary directory. The first call also starts to
// remove directories left behind by ended servers, in the background. The
// caller holds r.mu.
func (r *Runner) newTemp() (privateTemp, error) {
	for first := r.run.root == nil; ; first = true {
		if first {
			closeAll(r.run.lock)
			run, err := claimRun(r.config.TempDir, filepath.Dir(r.run.path))
			if err != nil {
				return privateTemp{}, err
			}
			r.run = run
			r.tasks.Go(func() { clearStale(run.base) })
		}
		r.run.next++
		name := strconv.Itoa(r.run.next)
		err := r.run.root.Mkdir(name, 0o700)
		if first || err == nil && r.run.there() || err != nil && !errors.Is(err, fs.ErrNotExist) { // otherwise somebody has removed it
			return privateTemp{root: r.run.root, name: name, path: filepath.Join(r.run.path, name)}, err
		}
	}
}

// there reports whether the path still leads to the directory.
func (d *runDir) there() bool {
	now, err := os.Lstat(d.path)
	return err == nil && fileinfo.IsOpenOn(d.root, now)
}

// claimRun makes a runner's directory and locks it. was is the earlier target
// of base, or "." for the first directory. It returns an error if the target
// has changed.
func claimRun(base, was string) (run runDir, err error) {
	real, err := filepath.EvalSymlinks(base)
	if err == nil && was != "." && was != real {
		err = fmt.Errorf("%s leads to another directory than before", base)
	}
	if err != nil {
		return runDir{}, err
	}
	if run.base, err = os.OpenRoot(real); err != nil {
		return runDir{}, err
	}
	if now, err := os.Lstat(real); err != nil || !fileinfo.IsOpenOn(run.base, now) {
		run.base.Close()
		return runDir{}, errors.Join(fmt.Errorf("%s is changed meanwhile", base), err)
	}
	for range 10 {
		name := runPrefix + rand.Text()[:10]
		if err = run.base.Mkdir(name, 0o700); err != nil {
			break
		}
		if run.root, err = run.base.OpenRoot(name); err != nil {
			continue
		}
		if run.lock, err = run.root.OpenFile(lockName, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
			run.root.Close()
			continue // another runner removed it as left behind
		}
		locked, noLocks := filelock.TryLock(run.lock)
		now, err := run.base.Lstat(filepath.Join(name, lockName))
		mine, err2 := run.lock.Stat()
		if err == nil && err2 == nil && os.SameFile(now, mine) && (locked || noLocks != nil) {
			run.path = filepath.Join(real, name)
			return run, nil
		}
		run.lock.Close()
		run.root.Close()
	}
	run.base.Close()
	return runDir{}, errors.Join(errors.New("the directory is removed as soon as it is made"), err)
}

// clearStale removes the directories of ended runners. It only considers those
// of this user.
func clearStale(base *os.Root) {
	dir, err := base.Open(".")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(mostStale)
	dir.Close()
	for _, name := range names {
		if !strings.HasPrefix(name, runPrefix) {
			continue
		}
		info, err := base.Lstat(name)
		if err != nil || !info.IsDir() || !ownFile(info) {
			continue
		}
		lock, err := base.OpenFile(filepath.Join(name, lockName), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > unlockedFor {
			removeTree(base, name)
		}
		if err != nil {
			continue
		}
		if locked, err := filelock.TryLock(lock); err == nil && locked {
			removeTree(base, name)
		}
		lock.Close()
	}
}

// endRun removes the runner's directory.
func (r *Runner) endRun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.run; run.root != nil {
		run.root.Close()
		removeTree(run.base, filepath.Base(run.path))
		run.base.Close()
		closeAll(run.lock)
		r.run = runDir{}
	}
}

// removeTree removes a directory and its content, including directories whose
// permissions commands removed. It follows no link out of root.
func removeTree(root *os.Root, name string) {
	if root.RemoveAll(name) == nil {
		return
	}
	root.Chmod(name, 0o700) //nolint:errcheck // on failure the removal fails
	dir, err := root.OpenRoot(name)
	if err != nil {
		return
	}
	fs.WalkDir(dir.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dir.Chmod(name, 0o700) // before WalkDir reads it
		}
		return nil
	})
	dir.Close()
	root.RemoveAll(name) //nolint:errcheck // a later runner tries again
}
