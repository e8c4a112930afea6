//go:build !linux

package sandbox

import "syscall"

// startWriteback begins writing to the disk where the system can be asked to.
func startWriteback(syscall.Conn, int64, int64) {}
