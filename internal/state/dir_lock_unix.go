//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package state

import (
	"errors"
	"os"
	"syscall"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

// dirLocksWork is true: the lock of a directory shows whether a process writes
// in it.
const dirLocksWork = true

// lockDirShared takes a shared lock on a directory until release is called. It
// waits while another process has the exclusive lock, which is never held for
// long. On a file system without locks it succeeds without a lock. It returns
// an error if the directory cannot be opened.
func lockDirShared(dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	// On a file system without locks, no process can claim the directory.
	return func() {
		filelock.Unlock(f)
		f.Close()
	}, nil
}

// tryLockDirExclusive takes the exclusive lock on a directory until release is
// called. locked is false, and release nil, if another process has a lock or
// the directory cannot be locked.
func tryLockDirExclusive(dir string) (release func(), locked bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		f.Close()
		return nil, false
	}
	return func() {
		filelock.Unlock(f)
		f.Close()
	}, true
}
