//go:build !unix

package servercheck

import "os/exec"

func inGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) {
	cmd.Process.Kill() //nolint:errcheck // it may have ended
}
