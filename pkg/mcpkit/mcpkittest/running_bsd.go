//go:build unix && !linux

package mcpkittest

import (
	"errors"
	"syscall"
)

// IsRunning reports whether the process exists. A zombie counts as running
// until its parent waits for it.
func IsRunning(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
