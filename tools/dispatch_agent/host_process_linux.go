package main

import (
	"os/exec"
	"syscall"
)

const exeSuffix = ""

// ownGroup starts the command in a new process group. The kernel kills the
// command when this process ends, even if it was killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
