package jsonrpc

import "golang.org/x/sys/unix"

// widen tries the most that a user may ask for, and less where that is less.
func widen(fd uintptr) {
	for _, size := range []int{1 << 20, 256 << 10} {
		if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size); err == nil {
			return
		}
	}
}
