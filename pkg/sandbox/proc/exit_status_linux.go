package proc

import (
	"syscall"
)

// setExitStatus sets the exit code and signal of the result from a wait status.
func (p *Process) setExitStatus(waitStatus int) {
	status := syscall.WaitStatus(waitStatus)
	p.result.ExitCode = status.ExitStatus()
	if status.Signaled() {
		p.result.Signal = status.Signal()
		p.result.ExitCode = 128 + int(status.Signal())
	}
}
