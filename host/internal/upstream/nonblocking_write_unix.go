//go:build unix

package upstream

import "syscall"

// nonBlockingWrite returns a function that writes as much to a pipe or socket as fits
// without blocking, nil for others. It saves a call the deadline and the timers of a
// write that may block.
func nonBlockingWrite(file pipe) func(data []byte) (int, error) {
	f, ok := file.(syscall.Conn)
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
