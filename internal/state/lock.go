package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lockDir has one file for each locked path. The kernel's lock on the file
// counts, so nothing is stale after a crash; the content of the file only names
// the holder.
const lockDir = "locks-1"

// defaultLockWait is the longest wait for a lock, unless ctx has an earlier
// deadline.
const defaultLockWait = 30 * time.Second

// Lock locks the file that target names, so that no other process or goroutine
// that uses these tools changes it. The caller must call unlock. Lock waits
// until Config.LockWait or the deadline of ctx has passed, then returns LOCKED,
// with the holder if known; it returns CANCELLED if ctx was cancelled. Read the
// file (Target.Open) after Lock, not before.
//
// There are two locks. The lock in the state directory is based on the path, so
// it also works for a file that does not exist yet, and it knows its holder.
// The lock on the file itself (Target.LockFile) also excludes processes with
// another state directory or without one. Both are kernel locks and end with
// the process. Do not lock two targets at the same time: two processes that
// lock them in different order would wait for each other until the first wait
// ends.
func (s *Store) Lock(ctx context.Context, target *sandbox.Target) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.LockWait)
	defer cancel()
	release, err := s.LockPath(ctx, target.Path)
	if err != nil {
		return nil, err
	}
	open, err := target.LockFile(ctx)
	if err != nil {
		release()
		return nil, err
	}
	return sync.OnceFunc(func() {
		open()
		release()
	}), nil
}

// LockPath takes only the first of Lock's two locks, for a resource that is not
// a file of the user. path is absolute, with links resolved. Without a state
// directory it excludes only other goroutines that use this Store. Errors are
// those of Lock.
func (s *Store) LockPath(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.LockWait)
	defer cancel()
	name := recordName(path)
	if err := s.queue.acquire(ctx, name); err != nil {
		return nil, lockedError(path, "another call of this server", err)
	}
	f, err := s.acquireLockFile(ctx, name)
	if err != nil {
		s.queue.release(name)
		if ctx.Err() != nil {
			return nil, lockedError(path, s.holderOf(name), ctx.Err())
		}
		return nil, err
	}
	if f != nil {
		writeHolder(f, path)
	}
	return sync.OnceFunc(func() {
		if f != nil {
			filelock.Unlock(f)
			f.Close()
		}
		s.queue.release(name)
	}), nil
}

// acquireLockFile opens the lock file of a record name, and waits until it has locked it
// or ctx ends. The caller unlocks and closes it. It returns nil, nil if no state is kept
// or the file system has no locks. The only error is ctx.Err().
func (s *Store) acquireLockFile(ctx context.Context, name string) (*os.File, error) {
	for {
		dir, err := s.makeSubdir(lockDir)
		if err != nil {
			return nil, nil // without state, tools still work
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|openNoFollow, 0o600)
		if err != nil {
			return nil, nil
		}
		locked, err := filelock.Lock(ctx, f)
		if err != nil || !locked {
			f.Close()
			return nil, err
		}
		// The file may have been removed before we locked it.
		mine, err := f.Stat()
		now, err2 := os.Lstat(path)
		if err == nil && err2 == nil && os.SameFile(mine, now) {
			s.removeOldLocks(dir)
			return f, nil
		}
		f.Close()
	}
}

// writeHolder writes this process and the path into a locked file, for the
// messages of other processes.
func writeHolder(f *os.File, path string) {
	note := fmt.Appendf(nil, "%d\n%s\n%s\n", os.Getpid(), filepath.Base(os.Args[0]), path)
	if n, err := f.WriteAt(note, 0); err == nil {
		f.Truncate(int64(n)) // remove the rest of a longer, older note
	}
}

// holderOf describes the process that holds the lock of a record name: "another
// program" if unknown.
func (s *Store) holderOf(name string) string {
	data, err := s.readRecord(lockDir, name)
	if err != nil {
		return "another program"
	}
	lines := strings.Split(string(data), "\n")
	if len(lines) < 3 {
		return "another program"
	}
	return fmt.Sprintf("%s, process %s", pathname.Escape(lines[1]), pathname.Escape(lines[0]))
}

// lockedError returns the error of a wait that ended with err: CANCELLED if it
// was cancelled, otherwise LOCKED.
func lockedError(path, holder string, err error) error {
	if errors.Is(err, context.Canceled) {
		return toolerr.New(toolerr.Cancelled, "waiting for %s was stopped, nothing was changed: %w", pathname.Escape(filepath.Base(path)), err)
	}
	return toolerr.New(toolerr.Locked, "%s is being changed by %s, nothing was changed: try again in a moment: %w", pathname.Escape(filepath.Base(path)), holder, err)
}

// removeOldLocks removes the lock files in dir that no process holds and that have
// not been used for pruneInterval. It does nothing if a process has done so within that
// time. A process that has opened such a file but not locked it yet notices the
// removal.
func (s *Store) removeOldLocks(dir string) {
	mark := filepath.Join(dir, pruneMarkFile)
	info, err := os.Stat(mark)
	if err == nil && fileAge(info) < pruneInterval {
		return
	}
	now := time.Now()
	if os.WriteFile(mark, nil, 0o600) != nil || os.Chtimes(mark, now, now) != nil {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Name() == pruneMarkFile || fileAge(info) < pruneInterval {
			continue
		}
		removeOldLock(filepath.Join(dir, info.Name()))
	}
}

// removeOldLock removes a lock file if no process holds its lock. It holds
// the lock itself during the removal.
func removeOldLock(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|openNoFollow, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if locked, err := filelock.TryLock(f); err != nil || !locked {
		return
	}
	mine, err := f.Stat()
	now, err2 := os.Lstat(path)
	if err == nil && err2 == nil && os.SameFile(mine, now) && fileAge(now) >= pruneInterval {
		os.Remove(path)
	}
}
