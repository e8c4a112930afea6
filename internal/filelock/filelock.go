// Package filelock takes exclusive locks of open files, which exclude other
// processes.
package filelock

import (
	"context"
	"os"
	"runtime"
	"time"
)

const (
	lockPollMin = 500 * time.Microsecond
	lockPollMax = 8 * time.Millisecond
)

// Lock is TryLock that waits until the lock is free or ctx ends. false
// without an error: there are no locks here. The system's own waiting cannot
// be cancelled, so this asks again and again, in intervals that do not grow
// with the waiting: nobody falls behind.
func Lock(ctx context.Context, f *os.File) (bool, error) {
	interval := lockPollMin
	for {
		locked, err := TryLock(f)
		runtime.KeepAlive(f)
		if err != nil {
			return false, nil
		}
		if locked {
			return true, nil
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-timer.C:
		}
		interval = min(2*interval, lockPollMax)
	}
}
