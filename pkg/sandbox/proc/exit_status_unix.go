//go:build linux || darwin

package proc

import (
	"syscall"
)

// setExitStatus sets the result's exit code from a wait status. For a killed
// process it sets the signal, and 128 plus its number as the exit code.
func (p *Process) setExitStatus(waitStatus int) {
	status := syscall.WaitStatus(waitStatus)
	p.result.ExitCode = status.ExitStatus()
	if status.Signaled() {
		p.result.Signal = status.Signal()
		p.result.ExitCode = 128 + int(status.Signal())
	}
}
