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

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lockDir holds a file a path; the kernel's lock on it is what counts, so
// nothing is stale after a crash, and what is written in it only names the
// holder.
const lockDir = "locks-1"

// defaultLockWait is how long a lock is waited for when ctx has no deadline
// that comes earlier.
const defaultLockWait = 30 * time.Second

// Lock makes the caller the only one, of all processes and goroutines that
// use these tools, to change the file that target names, until unlock.
// LOCKED when it was not to be had in time, naming who has it if that is
// known. Read the file (Target.Open) after Lock, not before.
//
// There are two locks. The one in the state directory goes by the path, so
// it holds for a file that does not exist yet, too, and knows its holder.
// The one on the file itself (Target.Guard) also excludes processes with
// another state directory or none. Both are the kernel's and end with the
// process. Do not hold two targets at a time: two processes that take them in
// different order would wait for each other until one gives up.
func (s *Store) Lock(ctx context.Context, target *sandbox.Target) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.LockWait)
	defer cancel()
	release, err := s.LockPath(ctx, target.Path)
	if err != nil {
		return nil, err
	}
	open, err := target.Guard(ctx)
	if err != nil {
		release()
		return nil, err
	}
	return sync.OnceFunc(func() {
		open()
		release()
	}), nil
}

// LockPath is the first of Lock's two locks alone, for something that is no
// file of the user's. path is absolute, with links resolved. Without a state
// directory it only excludes other goroutines of this Store.
func (s *Store) LockPath(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.LockWait)
	defer cancel()
	name := recordName(path)
	if err := s.queue.enter(ctx, name); err != nil {
		return nil, lockedError(path, "another call of this server", err)
	}
	f, err := s.lockFile(ctx, name)
	if err != nil {
		s.queue.leave(name)
		if ctx.Err() != nil {
			return nil, lockedError(path, s.holder(name), ctx.Err())
		}
		return nil, err
	}
	if f != nil {
		noteHolder(f, path)
	}
	return sync.OnceFunc(func() {
		if f != nil {
			sandbox.Unlock(f)
			f.Close()
		}
		s.queue.leave(name)
	}), nil
}

// lockFile opens and locks the file of a path; nil where no state is kept or
// the place has no locks.
func (s *Store) lockFile(ctx context.Context, name string) (*os.File, error) {
	for {
		dir, err := s.sub(lockDir)
		if err != nil {
			return nil, nil // state only makes things better
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
		if err != nil {
			return nil, nil
		}
		locked, err := sandbox.WaitLock(ctx, f)
		if err != nil || !locked {
			f.Close()
			return nil, err
		}
		// It may have been cleared away before we had the lock.
		mine, err := f.Stat()
		now, err2 := os.Lstat(path)
		if err == nil && err2 == nil && os.SameFile(mine, now) {
			s.clearLocks(dir)
			return f, nil
		}
		f.Close()
	}
}

// noteHolder says in a locked file who has it. It is for messages only.
func noteHolder(f *os.File, path string) {
	note := fmt.Appendf(nil, "%d\n%s\n%s\n", os.Getpid(), filepath.Base(os.Args[0]), path)
	if n, err := f.WriteAt(note, 0); err == nil {
		f.Truncate(int64(n)) // the rest of a longer one that was there before
	}
}

// holder describes who holds a lock, as far as is known.
func (s *Store) holder(name string) string {
	data, err := s.read(lockDir, name)
	if err != nil {
		return "another program"
	}
	lines := strings.Split(string(data), "\n")
	if len(lines) < 3 {
		return "another program"
	}
	return fmt.Sprintf("%s, process %s", sandbox.EscapeName(lines[1]), sandbox.EscapeName(lines[0]))
}

func lockedError(path, holder string, err error) error {
	if errors.Is(err, context.Canceled) {
		return toolerr.New(toolerr.Cancelled, "waiting for %s was stopped, nothing was changed: %w", sandbox.EscapeName(filepath.Base(path)), err)
	}
	return toolerr.New(toolerr.Locked, "%s is being changed by %s, nothing was changed: try again in a moment: %w", sandbox.EscapeName(filepath.Base(path)), holder, err)
}

// clearLocks removes lock files that nobody has used for a while, once in
// that while. Who has one open but not yet locked sees that it has gone.
func (s *Store) clearLocks(dir string) {
	mark := filepath.Join(dir, pruneMark)
	info, err := os.Stat(mark)
	if err == nil && age(info) < pruneEvery {
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
		if err != nil || !info.Mode().IsRegular() || info.Name() == pruneMark || age(info) < pruneEvery {
			continue
		}
		clearLock(filepath.Join(dir, info.Name()))
	}
}

// clearLock removes a lock file if nobody holds it, holding it meanwhile.
func clearLock(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if locked, err := sandbox.TryLock(f); err != nil || !locked {
		return
	}
	mine, err := f.Stat()
	now, err2 := os.Lstat(path)
	if err == nil && err2 == nil && os.SameFile(mine, now) && age(now) >= pruneEvery {
		os.Remove(path)
	}
}

// queue lets the goroutines of one process wait in order of their coming.
// The zero value is usable.
type queue struct {
	mu    sync.Mutex
	lines map[string][]chan struct{} // who holds a name, then who waits
}

// enter waits until nobody else holds the name.
func (q *queue) enter(ctx context.Context, name string) error {
	turn := make(chan struct{})
	q.mu.Lock()
	if q.lines == nil {
		q.lines = map[string][]chan struct{}{}
	}
	if len(q.lines[name]) == 0 {
		close(turn)
	}
	q.lines[name] = append(q.lines[name], turn)
	q.mu.Unlock()
	select {
	case <-turn: // whatever became of ctx: what keeps it from the lock is somebody else
		return nil
	default:
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		q.drop(name, turn)
		return ctx.Err()
	}
}

// leave gives the name to the next who waits.
func (q *queue) leave(name string) {
	q.mu.Lock()
	first := q.lines[name][0]
	q.mu.Unlock()
	q.drop(name, first)
}

// drop takes one out of the line, wherever it stands.
func (q *queue) drop(name string, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[name]
	for i, other := range line {
		if other != turn {
			continue
		}
		line = append(line[:i:i], line[i+1:]...)
		if i == 0 && len(line) > 0 {
			close(line[0])
		}
		break
	}
	q.lines[name] = line
	if len(line) == 0 {
		delete(q.lines, name)
	}
}
