//go:build unix

package blobdir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// MakePrivate creates a directory with mode 0700, or sets this mode of an existing one,
// since others could otherwise read or replace its files. It fails if it belongs to
// another user.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return withAdvice(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user; choose another directory with --state", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return withAdvice(os.Chmod(dir, 0o700))
	}
	return nil
}

// withAdvice adds to err how the user can avoid it; nil stays nil.
func withAdvice(err error) error {
	if err != nil {
		err = fmt.Errorf("%w; choose another directory with --state", err)
	}
	return err
}

// syncDir syncs a directory, so that new names in it survive a power failure.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
