package upstream

import "syscall"

// groupAttributes puts a program into its own process group. The kernel kills it when
// the thread that started it ends; that thread belongs to the Spawner and lives as
// long as the host.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
