//go:build !unix

package resident

import "syscall"

func detached() *syscall.SysProcAttr { return nil }
