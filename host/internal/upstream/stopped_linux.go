package upstream

import "golang.org/x/sys/unix"

// isStopped reports whether a child is stopped (SIGSTOP, Ctrl-Z). It is false after
// Wait.
func isStopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}
