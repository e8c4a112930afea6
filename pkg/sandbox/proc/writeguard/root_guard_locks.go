package writeguard

import (
	"errors"
	"os"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// The marks of a root.
const (
	markIdle = ' '
	markL2   = '2' // commands ran only at L2
	markL1   = '1'
)

func markOf(level supervise.Level) byte {
	if level == supervise.L1 {
		return markL1
	}
	return markL2
}

// lockWait bounds the wait for another server that searches a root.
const lockWait = 20 * time.Second

var errBusy = errors.New("another server has been looking through the root for too long")

// enter takes the lock of the baseline. It returns errBusy after lockWait.
func (w *RootGuard) enter() error {
	w.mu.Lock()
	for began := time.Now(); w.lock != nil && !flock(w.lock, lockExclusive); time.Sleep(time.Millisecond) {
		if time.Since(began) > lockWait {
			w.mu.Unlock()
			return errBusy
		}
	}
	if now, err := os.Lstat(w.root); err == nil && !fileinfo.IsOpenOn(w.handle, now) { // another directory has its name
		if handle, err := os.OpenRoot(w.root); err == nil {
			w.handle.Close()
			w.handle = handle
		}
	}
	return nil
}

func (w *RootGuard) leave() {
	if w.lock != nil {
		flock(w.lock, lockNone)
	}
	w.mu.Unlock()
}

// alone takes the root exclusively. It returns false if a command of another
// server or of this one is running in it.
func (w *RootGuard) alone() bool {
	return w.running == 0 && (w.use == nil || flock(w.use, lockExclusive))
}

// share shows other servers that a command runs, until rest.
func (w *RootGuard) share() {
	if w.use != nil && w.running == 0 {
		flock(w.use, lockShared)
	}
	w.running++
}

func (w *RootGuard) readMark() byte {
	if w.use == nil {
		return w.mark
	}
	var b [1]byte
	if n, _ := w.use.ReadAt(b[:], 0); n == 1 {
		return b[0]
	}
	return markIdle
}

func (w *RootGuard) writeMark(mark byte) error {
	w.mark = mark
	if w.use == nil {
		return nil
	}
	_, err := w.use.WriteAt([]byte{mark}, 0)
	return err
}
