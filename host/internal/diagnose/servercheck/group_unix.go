//go:build unix

package servercheck

import (
	"os/exec"
	"syscall"
)

// setGroup makes cmd start in its own process group, which can be killed as a whole:
// many servers are started by a script or by npx.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		killGroup(cmd)
		return nil
	}
}

// killGroup kills all processes of cmd's group.
func killGroup(cmd *exec.Cmd) {
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // all processes can have ended
}
