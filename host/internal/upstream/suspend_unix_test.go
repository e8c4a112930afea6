//go:build unix

package upstream_test

import (
	"os"
	"syscall"
)

// suspend stops a process, as Ctrl-Z does.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
