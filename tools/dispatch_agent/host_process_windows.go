package main

import "os/exec"

// exeSuffix ends the file names of programs on this system.
const exeSuffix = ".exe"

// setProcessGroup does nothing on this system.
func setProcessGroup(*exec.Cmd) {}

// signalGroup kills the command if kill is set. Its tools end when their input
// ends.
func signalGroup(cmd *exec.Cmd, kill bool) {
	if kill {
		cmd.Process.Kill() //nolint:errcheck // it fails when it has ended
	}
}
