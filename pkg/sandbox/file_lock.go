package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// LockFile locks the file of the target (flock on its inode), so that no other process
// of toolroom changes it until release is called, whatever its state directory. It
// waits until ctx ends, and returns LOCKED after a deadline. It locks nothing if the
// file does not exist, because creating a file never replaces another one, if the file
// may not be opened, or if the system or the file system has no such locks. Callers use
// state.Store.Lock, which also orders the writers of files that do not exist.
func (t *Target) LockFile(ctx context.Context) (release func(), err error) {
	nothing := func() {}
	if !filelock.Advisory {
		return nothing, nil
	}
	for {
		f, err := t.openForLock()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nothing, nil
		}
		if err != nil {
			return nil, t.fs.explainWriteError(t.name, err)
		}
		locked, err := filelock.Lock(ctx, f)
		if err == nil && !locked {
			f.Close()
			return nothing, nil
		}
		if err != nil {
			f.Close()
			if errors.Is(err, context.DeadlineExceeded) {
				return nil, toolerr.New(toolerr.Locked, "%s is locked by another program, %s: try again when it has finished: %w", pathname.Escape(t.name), unchanged, err)
			}
			return nil, t.fs.explainWriteError(t.name, err)
		}
		// The previous owner of the lock may have replaced the locked file by a new
		// one.
		now, err := t.currentStat()
		info, err2 := f.Stat()
		if err == nil && err2 == nil && isSameFileAs(now, info) {
			return func() {
				filelock.Unlock(f)
				f.Close()
			}, nil
		}
		f.Close()
	}
}

// openForLock opens the file with the access that flock(2) needs: for reading
// or, if this user may not read it, for writing.
func (t *Target) openForLock() (*os.File, error) {
	if _, err := t.currentStat(); err != nil {
		return nil, err
	}
	f, _, err := t.dir.open(t.base, os.O_RDONLY)
	if errors.Is(err, fs.ErrPermission) {
		f, _, err = t.dir.open(t.base, os.O_WRONLY)
	}
	return f, err
}
