package upstream

import "syscall"

// groupAttributes put a program into a group of its own and have the kernel
// kill it when the thread that started it ends, which is the Spawner's and
// lives as long as the host.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
