//go:build !unix

package resident

import "syscall"

// detachedAttributes returns nil: there is nothing to detach from on this system.
func detachedAttributes() *syscall.SysProcAttr { return nil }
