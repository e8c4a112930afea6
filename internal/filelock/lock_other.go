//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package filelock

import (
	"errors"
	"os"
)

const Advisory = false

// TryLock is not to be had on this system.
func TryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Unlock has nothing to free.
func Unlock(*os.File) {}
