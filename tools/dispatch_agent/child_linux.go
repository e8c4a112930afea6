package main

import (
	"os/exec"
	"syscall"
)

const exeSuffix = ""

// ownGroup makes the command a process group, which the kernel ends when this
// process is gone, however that ended.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
