package upstream

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttributes put a program into a group of its own and have the kernel
// kill it when the thread that started it ends, which is the Spawner's and
// lives as long as the host.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pipeSize lets a large message pass in few turns. The kernel gives the
// memory only as it is used.
const pipeSize = 1 << 20

// enlarge makes a pipe hold more. The system's limits may refuse, which only
// costs time.
func enlarge(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // see above
		unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) //nolint:errcheck // see above
	})
}
