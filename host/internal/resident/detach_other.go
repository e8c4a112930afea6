//go:build !unix

package resident

import "syscall"

// detached returns nil: there is nothing to detach from on this system.
func detached() *syscall.SysProcAttr { return nil }
