package writeguard

import (
	"errors"
	"os"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// The marks of a root: the first byte of the file "use". A lower level has a
// lower mark.
const (
	markIdle = ' ' // no command runs
	markL2   = '2' // commands run or ran, all at L2
	markL1   = '1' // at least one command runs or ran at L1
)

// markOf returns the mark of a command that runs at level.
func markOf(level supervise.Level) byte {
	if level == supervise.L1 {
		return markL1
	}
	return markL2
}

// maxLockWait bounds the wait for another server that searches a root.
const maxLockWait = 20 * time.Second

// errBusy means that another server held a lock for maxLockWait.
var errBusy = errors.New("another server has been looking through the root for too long")

// lock takes the locks of this process and of the baseline, and opens the root
// again if another directory has its path by now. It returns errBusy after
// maxLockWait; then no lock is held.
func (w *RootGuard) lock() error {
	w.mu.Lock()
	for began := time.Now(); w.lockFile != nil && !tryFlock(w.lockFile, lockExclusive); time.Sleep(time.Millisecond) {
		if time.Since(began) > maxLockWait {
			w.mu.Unlock()
			return errBusy
		}
	}
	if now, err := os.Lstat(w.root); err == nil && !fileinfo.IsSameDir(w.handle, now) { // another directory has its name
		if handle, err := os.OpenRoot(w.root); err == nil {
			w.handle.Close()
			w.handle = handle
		}
	}
	return nil
}

// unlock releases the locks that lock took.
func (w *RootGuard) unlock() {
	if w.lockFile != nil {
		tryFlock(w.lockFile, lockRelease)
	}
	w.mu.Unlock()
}

// tryLockUseFile takes the lock of the file "use" exclusively, and returns
// true if no command of any server with this state directory is running in the
// root.
func (w *RootGuard) tryLockUseFile() bool {
	return w.runningCount == 0 && (w.useFile == nil || tryFlock(w.useFile, lockExclusive))
}

// shareUseFile counts one more command, and shares the lock of the file "use",
// which shows other servers that a command runs.
func (w *RootGuard) shareUseFile() {
	if w.useFile != nil && w.runningCount == 0 {
		tryFlock(w.useFile, lockShared)
	}
	w.runningCount++
}

// readMark returns the mark in the file "use", markIdle if it cannot be read.
func (w *RootGuard) readMark() byte {
	if w.useFile == nil {
		return w.mark
	}
	var b [1]byte
	if n, _ := w.useFile.ReadAt(b[:], 0); n == 1 {
		return b[0]
	}
	return markIdle
}

// writeMark writes the mark to the file "use", or keeps it in memory without a
// state directory.
func (w *RootGuard) writeMark(mark byte) error {
	w.mark = mark
	if w.useFile == nil {
		return nil
	}
	_, err := w.useFile.WriteAt([]byte{mark}, 0)
	return err
}
