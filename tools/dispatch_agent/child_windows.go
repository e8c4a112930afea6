package main

import "os/exec"

const exeSuffix = ".exe"

func ownGroup(*exec.Cmd) {}

// endGroup kills the command. Its tools see the end of their input.
func endGroup(cmd *exec.Cmd, kill bool) {
	if kill {
		cmd.Process.Kill() //nolint:errcheck // it fails when it has ended
	}
}
