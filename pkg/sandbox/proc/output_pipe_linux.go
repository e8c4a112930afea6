package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// outputPipe returns a pipe of pipeSize for the output of a command.
func outputPipe() (read, write *os.File, err error) {
	read, write, err = os.Pipe()
	if err == nil {
		if raw, err := read.SyscallConn(); err == nil { // a larger pipe is only faster
			raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
		}
	}
	return read, write, err
}

// pipeSize is the capacity of the output pipe in bytes.
const pipeSize = 1 << 20

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
