//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package filelock

import (
	"errors"
	"os"
)

// Advisory reports whether there are locks that hinder only programs that ask
// for them. This system has none.
const Advisory = false

// TryLock returns false and errors.ErrUnsupported: this system has no locks.
func TryLock(*os.File) (locked bool, err error) { return false, errors.ErrUnsupported }

// Unlock does nothing: this system has no locks.
func Unlock(*os.File) {}
