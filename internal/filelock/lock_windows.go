package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Advisory reports whether locks hinder only programs that ask for them. On
// Windows a lock on a user's file would also keep readers out.
const Advisory = false

// TryLock takes the exclusive lock of an open file and does not wait. The lock
// is held until the file is closed. It returns false if another process or
// handle holds the lock, and an error if the file cannot be locked.
func TryLock(f *os.File) (locked bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock does nothing: closing the file frees the lock here.
func Unlock(*os.File) {}
