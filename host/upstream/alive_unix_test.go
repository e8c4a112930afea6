//go:build unix

package upstream_test

import "syscall"

func processAnswers(pid int) bool { return syscall.Kill(pid, 0) == nil }
