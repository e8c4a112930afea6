//go:build unix

package dirtree

import (
	"os/exec"
	"syscall"
)

// setProcessGroup starts the command in a separate process group, which is killed as a
// whole.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
