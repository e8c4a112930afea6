//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endGroup asks the command's group to end, or kills it.
func endGroup(cmd *exec.Cmd, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	syscall.Kill(-cmd.Process.Pid, signal) //nolint:errcheck // it fails when nobody is left
}
