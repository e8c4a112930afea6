//go:build unix && !linux

package upstream

import "syscall"

// groupAttributes put a program into a group of its own.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
