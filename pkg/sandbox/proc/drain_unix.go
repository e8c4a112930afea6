//go:build linux || darwin

package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// drain passes the content of a pipe to take without waiting for more. It reads
// at most pipeSize bytes, since another process may still be writing. buf is
// its buffer.
func drain(pipe *os.File, buf []byte, take func([]byte)) {
	raw, err := pipe.SyscallConn()
	if err != nil || pipe.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw.Read(func(fd uintptr) bool {
		for left := pipeSize; left > 0; {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			take(buf[:n])
			left -= n
		}
		return true
	})
}
