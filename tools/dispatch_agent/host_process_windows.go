package main

import "os/exec"

const exeSuffix = ".exe"

func ownGroup(*exec.Cmd) {}

// endGroup kills the command if kill is set. Its tools end when their input
// ends.
func endGroup(cmd *exec.Cmd, kill bool) {
	if kill {
		cmd.Process.Kill() //nolint:errcheck // it fails when it has ended
	}
}
