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
// directory of Config.TempDir. That directory has the name runPrefix+random
// and contains a file that the runner keeps locked. The kernel releases the
// lock when the process ends, so later runners know which directories are
// unused.
const (
	runPrefix = "toolroom-run-"
	lockName  = "lock"
)

// staleAfter is the age at which a directory without a lock file counts as
// unused. A younger directory may be in the making.
const staleAfter = time.Minute

// maxStaleNames bounds the names that are checked for unused directories.
const maxStaleNames = 10_000

// runDir is the directory with all private temporary directories of a runner.
// A command's root may contain it, so commands can replace directories on the
// way to its files by links. Therefore it is used by its descriptor, and its
// path is used only where links are not followed.
type runDir struct {
	base       *os.Root // Config.TempDir
	root       *os.Root // the directory itself; nil: not made yet
	path       string   // contained no link when it was made
	lock       *os.File // locked until the runner is closed
	lastNumber int      // name of the last directory made in it
}

// privateTemp is the private temporary directory of a command.
type privateTemp struct {
	root *os.Root // the runner's directory
	name string   // the name in root
	path string
}

// pathForCommand returns the path at which a command sees the directory. tmpCovered
// means that the command sees all of /tmp instead of the directory there.
func (t privateTemp) pathForCommand(tmpCovered bool, level Level) string {
	if level == L2 && !tmpCovered {
		return "/tmp"
	}
	return t.path
}

// takeTemp returns an empty private temporary directory, a prepared one if
// possible. It returns a CANCELLED error after Close.
func (r *Runner) takeTemp() (privateTemp, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return privateTemp{}, errClosing()
	}
	for len(r.preparedTemps) > 0 {
		temp := r.preparedTemps[0]
		r.preparedTemps = slices.Delete(r.preparedTemps, 0, 1)
		if info, err := temp.root.Lstat(temp.name); err == nil && info.IsDir() && temp.root == r.runDir.root && r.runDir.isAtPath() { // otherwise somebody has removed it
			return temp, nil
		}
	}
	return r.newTemp()
}

// prepareTemps makes as many directories as there are waiting supervisors. If
// the last command had a prologue, it also makes the report file, since to
// create it takes longer than to write it.
func (r *Runner) prepareTemps() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && len(r.preparedTemps) < maxPrestarted {
		temp, err := r.newTemp()
		if err != nil { // the next command reports it
			return
		}
		if r.lastHadPrologue {
			temp.writeFile(reportName, "") //nolint:errcheck // otherwise the prologue makes it
		}
		r.preparedTemps = append(r.preparedTemps, temp)
	}
}

// writeFile makes a file in the directory. It replaces a file that a command
// may have made.
func (t privateTemp) writeFile(name, text string) error {
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

// remove removes the directory with its content. It ignores errors: a later
// runner tries again.
func (t privateTemp) remove() { removeTree(t.root, t.name) }

// newTemp makes a private temporary directory. The first call also starts to
// remove the directories of ended servers, in the background. The caller holds
// r.mu.
func (r *Runner) newTemp() (privateTemp, error) {
	for first := r.runDir.root == nil; ; first = true {
		if first {
			closeAll(r.runDir.lock)
			run, err := makeRunDir(r.config.TempDir, filepath.Dir(r.runDir.path))
			if err != nil {
				return privateTemp{}, err
			}
			r.runDir = run
			r.background.Go(func() { removeStaleRuns(run.base) })
		}
		r.runDir.lastNumber++
		name := strconv.Itoa(r.runDir.lastNumber)
		err := r.runDir.root.Mkdir(name, 0o700)
		if first || err == nil && r.runDir.isAtPath() || err != nil && !errors.Is(err, fs.ErrNotExist) { // otherwise somebody has removed it
			return privateTemp{root: r.runDir.root, name: name, path: filepath.Join(r.runDir.path, name)}, err
		}
	}
}

// isAtPath reports whether d.path still leads to the directory.
func (d *runDir) isAtPath() bool {
	now, err := os.Lstat(d.path)
	return err == nil && fileinfo.IsSameDir(d.root, now)
}

// makeRunDir makes a runner's directory in base and locks it. expected is the
// directory that base must lead to, with links resolved; "." means any. It
// returns an error if base leads elsewhere.
func makeRunDir(base, expected string) (run runDir, err error) {
	resolved, err := filepath.EvalSymlinks(base)
	if err == nil && expected != "." && expected != resolved {
		err = fmt.Errorf("%s leads to another directory than before", base)
	}
	if err != nil {
		return runDir{}, err
	}
	if run.base, err = os.OpenRoot(resolved); err != nil {
		return runDir{}, err
	}
	if now, err := os.Lstat(resolved); err != nil || !fileinfo.IsSameDir(run.base, now) {
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
			run.path = filepath.Join(resolved, name)
			return run, nil
		}
		run.lock.Close()
		run.root.Close()
	}
	run.base.Close()
	return runDir{}, errors.Join(errors.New("the directory is removed as soon as it is made"), err)
}

// removeStaleRuns removes the directories of ended runners of this user.
func removeStaleRuns(base *os.Root) {
	dir, err := base.Open(".")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(maxStaleNames)
	dir.Close()
	for _, name := range names {
		if !strings.HasPrefix(name, runPrefix) {
			continue
		}
		info, err := base.Lstat(name)
		if err != nil || !info.IsDir() || !isOwnFile(info) {
			continue
		}
		lock, err := base.OpenFile(filepath.Join(name, lockName), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > staleAfter {
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

// removeRunDir removes the runner's directory with everything in it.
func (r *Runner) removeRunDir() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.runDir; run.root != nil {
		run.root.Close()
		removeTree(run.base, filepath.Base(run.path))
		run.base.Close()
		closeAll(run.lock)
		r.runDir = runDir{}
	}
}

// removeTree removes a directory and its content, including directories whose
// permissions commands removed. It follows no link out of root, and ignores
// errors: a later runner tries again.
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
