//go:build unix

package upstream_test

import (
	"os"
	"syscall"
)

func processAnswers(pid int) bool { return syscall.Kill(pid, 0) == nil }

// suspend stops a process, as Ctrl-Z does.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
