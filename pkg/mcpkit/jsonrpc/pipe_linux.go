package jsonrpc

import "golang.org/x/sys/unix"

// enlargePipeFD requests the largest size that an unprivileged user may have, then a
// smaller one.
func enlargePipeFD(fd uintptr) {
	for _, size := range []int{1 << 20, 256 << 10} {
		if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size); err == nil {
			return
		}
	}
}
