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

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// The private temporary directories of a runner's commands are together in one
// directory of Config.TempDir, which has this prefix and holds a file that the
// runner keeps locked. The lock goes with the process, however that ends, so
// that a later runner knows which of them nobody needs any more.
const (
	runPrefix = "toolroom-run-"
	lockName  = "lock"
)

// unlockedFor is how long a directory may be without a locked file before it
// counts as left behind: it may just be being made.
const unlockedFor = time.Minute

// mostStale bounds how many names are looked at for what was left behind.
const mostStale = 10_000

// runDir is a runner's own directory. A root of the commands may hold it, so that
// they can put links into the way to what is in it: it is used by its descriptor, and
// its path only where no link is followed.
type runDir struct {
	base *os.Root // Config.TempDir
	root *os.Root
	path string // nothing in it was a link
	lock *os.File
	next int
}

// privateTemp is the private temporary directory of a command.
type privateTemp struct {
	root *os.Root // of the runner
	name string   // in it
	path string
}

// inside is where a command of a level sees the directory. covered says that it
// sees all of /tmp.
func (t privateTemp) inside(covered bool, level Level) string {
	if level == L2 && !covered {
		return "/tmp"
	}
	return t.path
}

// makeTemp returns a private temporary directory: one that was made ahead, or a
// new one.
func (r *Runner) makeTemp() (privateTemp, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return privateTemp{}, errEnding()
	}
	for len(r.temps) > 0 {
		temp := r.temps[0]
		r.temps = slices.Delete(r.temps, 0, 1)
		if info, err := temp.root.Lstat(temp.name); err == nil && info.IsDir() && temp.root == r.run.root && r.run.there() { // else somebody cleared it away
			return temp, nil
		}
	}
	return r.newTemp()
}

// addTemps makes as many ahead as supervisors wait. In each is the file for a
// report, since to make a file takes longer than to write it.
func (r *Runner) addTemps() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && len(r.temps) < mostSpares {
		temp, err := r.newTemp()
		if err != nil { // the next command will say so
			return
		}
		if r.reports {
			temp.write(reportName, "") //nolint:errcheck // the prologue makes it then
		}
		r.temps = append(r.temps, temp)
	}
}

// write makes a file in it, in place of whatever a command may have put there.
func (t privateTemp) write(name, text string) error {
	name = filepath.Join(t.name, name)
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := t.root.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		t.root.RemoveAll(name) //nolint:errcheck // it is still there then
		f, err = t.root.OpenFile(name, flags, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// remove removes it with all that is in it.
func (t privateTemp) remove() { removeTree(t.root, t.name) }

// newTemp makes a private temporary directory. The first also has what ended
// servers left behind removed, in the background. r.mu is held.
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
		if first || err == nil && r.run.there() || err != nil && !errors.Is(err, fs.ErrNotExist) { // else somebody cleared it away
			return privateTemp{root: r.run.root, name: name, path: filepath.Join(r.run.path, name)}, err
		}
	}
}

// there reports whether its path leads to it.
func (d *runDir) there() bool {
	now, err := os.Lstat(d.path)
	return err == nil && isDir(d.root, now)
}

func isDir(root *os.Root, info os.FileInfo) bool {
	own, err := root.Stat(".")
	return err == nil && os.SameFile(own, info)
}

// claimRun makes a runner's directory and locks it. was is where base led before.
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
	if now, err := os.Lstat(real); err != nil || !isDir(run.base, now) {
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
			continue // taken for one that was left behind
		}
		locked, noLocks := sandbox.TryLock(run.lock)
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

// clearStale removes the directories of runners that are no more. Only those
// of this user are looked at.
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
		if locked, err := sandbox.TryLock(lock); err == nil && locked {
			removeTree(base, name)
		}
		lock.Close()
	}
}

// endRun removes the runner's own directory.
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

// removeTree removes a directory of ours with all that commands left in it,
// also what they made so that nobody may remove it. It follows no link out of root.
func removeTree(root *os.Root, name string) {
	if root.RemoveAll(name) == nil {
		return
	}
	root.Chmod(name, 0o700) //nolint:errcheck // the removal fails then
	dir, err := root.OpenRoot(name)
	if err != nil {
		return
	}
	fs.WalkDir(dir.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dir.Chmod(name, 0o700) // before it is read
		}
		return nil
	})
	dir.Close()
	root.RemoveAll(name) //nolint:errcheck // a later runner tries again
}
