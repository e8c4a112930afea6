// Package filelock takes exclusive locks of open files, which exclude other
// processes. The system frees a lock when its process ends, however that ends.
package filelock

import (
	"context"
	"os"
	"runtime"
	"time"
)

const (
	// minPollInterval and maxPollInterval bound the time between two attempts
	// of Lock.
	minPollInterval = 500 * time.Microsecond
	maxPollInterval = 8 * time.Millisecond
)

// Lock takes the exclusive lock of an open file, as TryLock does, and waits
// until the lock is free. locked is false, with ctx.Err(), if ctx ends first, and
// without an error if this system or file system has no locks.
//
// The system's own waiting cannot be cancelled. Lock polls instead, at
// intervals that stay short, so that a process that has waited for long is not
// at a disadvantage.
func Lock(ctx context.Context, f *os.File) (locked bool, err error) {
	interval := minPollInterval
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
		interval = min(2*interval, maxPollInterval)
	}
}
