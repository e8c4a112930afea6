//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

const exeSuffix = ""

// ownGroup makes the command a process group. It sees the end of this process
// by the end of its input.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
