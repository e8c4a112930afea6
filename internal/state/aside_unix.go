//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package state

import (
	"errors"
	"os"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// locksTell: a directory's lock says whether somebody writes in it.
const locksTell = true

// share takes part in the use of a directory, until release. It waits for
// one who has it alone, which is never for long.
func share(dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	// Where the file system has no locks nobody can claim the directory.
	return func() {
		sandbox.Unlock(f)
		f.Close()
	}, nil
}

// claim takes a directory alone, if nobody uses it.
func claim(dir string) (release func(), alone bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		f.Close()
		return nil, false
	}
	return func() {
		sandbox.Unlock(f)
		f.Close()
	}, true
}
