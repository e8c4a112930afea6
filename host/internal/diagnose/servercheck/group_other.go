//go:build !unix

package servercheck

import "os/exec"

// setGroup does nothing: process groups are not used on this system.
func setGroup(*exec.Cmd) {}

// killGroup kills the process.
func killGroup(cmd *exec.Cmd) {
	cmd.Process.Kill() //nolint:errcheck // it may have ended
}
