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
	pollMin = 500 * time.Microsecond
	pollMax = 8 * time.Millisecond
)

// Lock takes the exclusive lock of an open file like TryLock, and waits until it
// is free. It returns false and ctx.Err() if ctx ends first. It returns false
// without an error if there are no locks on this system or file system.
//
// The system's own waiting cannot be cancelled. Lock asks again and again
// instead, at intervals that stay short, so that a caller that has waited for
// long is not at a disadvantage.
func Lock(ctx context.Context, f *os.File) (bool, error) {
	interval := pollMin
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
		interval = min(2*interval, pollMax)
	}
}
