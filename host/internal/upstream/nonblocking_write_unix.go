//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// nonBlockingWrite returns a function that writes as much to a pipe as fits without blocking.
// It saves a call the deadline and the timers of a write that may block.
func nonBlockingWrite(file pipe) func(data []byte) (int, error) {
	f, ok := file.(*os.File)
	if !ok {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func(data []byte) (n int, err error) {
		fault := raw.Write(func(fd uintptr) bool {
			n, err = syscall.Write(int(fd), data)
			return true
		})
		switch {
		case fault != nil:
			return 0, fault
		case err == syscall.EAGAIN || err == syscall.EINTR:
			return 0, nil
		}
		return max(n, 0), err
	}
}
