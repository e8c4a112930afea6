//go:build !unix

package dirtree

import "os/exec"

// setProcessGroup does nothing on this system: a kill reaches only the process
// itself.
func setProcessGroup(*exec.Cmd) {}
