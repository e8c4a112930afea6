package main

import (
	"os/exec"
	"syscall"
)

// exeSuffix ends the file names of programs on this system.
const exeSuffix = ""

// setProcessGroup starts the command in a new process group. The kernel kills the
// command when this process ends, even if it was killed.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
