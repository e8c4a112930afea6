//go:build unix

package resident

import "syscall"

// detachedAttributes returns the attributes of a process that outlives its terminal and the host
// that started it.
func detachedAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
