//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// signalGroup sends SIGTERM to the command's process group, or SIGKILL if kill
// is set.
func signalGroup(cmd *exec.Cmd, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	syscall.Kill(-cmd.Process.Pid, signal) //nolint:errcheck // it fails when nobody is left
}
