//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// exeSuffix ends the file names of programs on this system.
const exeSuffix = ""

// setProcessGroup starts the command in a new process group. The command
// notices the end of this process by the end of its input.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
