package proc

import (
	"errors"
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

// runDir is a runner's own directory.
type runDir struct {
	path string
	lock *os.File
	next int
}

// privateTemp is the private temporary directory of a command.
type privateTemp struct {
	path string
	// prologue is what its file has, where it was written ahead.
	prologue string
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
		if info, err := os.Lstat(temp.path); err == nil && info.IsDir() { // else somebody cleared it away
			return temp, nil
		}
	}
	path, err := r.newTemp()
	return privateTemp{path: path}, err
}

// addTemp makes one ahead, for a command like the last one. In it are the files
// of a prologue, since to make a file takes longer than to write it.
func (r *Runner) addTemp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.temps) >= mostSpares {
		return
	}
	path, err := r.newTemp()
	if err != nil { // the next command will say so
		return
	}
	temp := privateTemp{path: path}
	if r.prologue != nil && r.last != nil {
		os.WriteFile(filepath.Join(path, reportName), nil, 0o600)
		text := prologueText(r.prologue, temp.inside(r.last.Covered("/tmp"), r.last.Level))
		if os.WriteFile(filepath.Join(path, prologueName), []byte(text), 0o600) == nil {
			temp.prologue = text
		}
	}
	r.temps = append(r.temps, temp)
}

// newTemp makes a private temporary directory. The first also has what ended
// servers left behind removed, in the background. r.mu is held.
func (r *Runner) newTemp() (string, error) {
	for first := r.run.path == ""; ; first = true {
		if first {
			closeAll(r.run.lock)
			path, lock, err := claimRun(r.config.TempDir)
			if err != nil {
				return "", err
			}
			r.run.path, r.run.lock = path, lock
			r.tasks.Go(func() { clearStale(r.config.TempDir) })
		}
		r.run.next++
		temp := filepath.Join(r.run.path, strconv.Itoa(r.run.next))
		err := os.Mkdir(temp, 0o700)
		if first || !errors.Is(err, fs.ErrNotExist) { // else somebody cleared it away
			return temp, err
		}
	}
}

// claimRun makes a runner's directory and locks it.
func claimRun(base string) (path string, lock *os.File, err error) {
	for range 10 {
		if path, err = os.MkdirTemp(base, runPrefix); err != nil {
			return "", nil, err
		}
		name := filepath.Join(path, lockName)
		if lock, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
			continue // taken for one that was left behind
		}
		locked, noLocks := sandbox.TryLock(lock)
		now, err := os.Lstat(name)
		mine, err2 := lock.Stat()
		if err == nil && err2 == nil && os.SameFile(now, mine) && (locked || noLocks != nil) {
			return path, lock, nil
		}
		lock.Close()
	}
	return "", nil, errors.Join(errors.New("the directory is removed as soon as it is made"), err)
}

// clearStale removes the directories of runners that are no more. Only those
// of this user are looked at.
func clearStale(base string) {
	dir, err := os.Open(base)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(mostStale)
	dir.Close()
	for _, name := range names {
		path := filepath.Join(base, name)
		info, err := os.Lstat(path)
		if !strings.HasPrefix(name, runPrefix) || err != nil || !info.IsDir() || !ownFile(info) {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > unlockedFor {
			removeTree(path)
		}
		if err != nil {
			continue
		}
		if locked, err := sandbox.TryLock(lock); err == nil && locked {
			removeTree(path)
		}
		lock.Close()
	}
}

// endRun removes the runner's own directory.
func (r *Runner) endRun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run.path != "" {
		removeTree(r.run.path)
		closeAll(r.run.lock)
		r.run = runDir{}
	}
}

// removeTree removes a directory of ours with all that commands left in it,
// also what they made so that nobody may remove it. It follows no link.
func removeTree(path string) {
	if os.RemoveAll(path) == nil {
		return
	}
	os.Chmod(path, 0o700)
	root, err := os.OpenRoot(path)
	if err != nil {
		return
	}
	fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			root.Chmod(name, 0o700) // before it is read
		}
		return nil
	})
	root.Close()
	os.RemoveAll(path)
}
