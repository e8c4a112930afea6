//go:build unix

package dirtree

import (
	"os/exec"
	"syscall"
)

// setProcessGroup makes cmd run in a separate process group, and makes the end
// of its context kill the whole group.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
