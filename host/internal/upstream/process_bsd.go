//go:build unix && !linux

package upstream

import "syscall"

// groupAttributes puts a program into its own process group.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
