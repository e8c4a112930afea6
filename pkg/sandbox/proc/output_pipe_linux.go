package proc

import (
	"os"

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
