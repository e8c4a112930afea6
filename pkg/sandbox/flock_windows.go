package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// guarded: a lock on a file of the user's own would keep readers out, too.
const guarded = false

// TryLock takes the exclusive lock of an open file for as long as it is open,
// without waiting. It goes with the process, however that ends.
func TryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock does nothing: to close the file frees the lock here.
func Unlock(*os.File) {}
