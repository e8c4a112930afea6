//go:build unix

package main

import "syscall"

// openFilesLimit returns the limit of open files of this process.
func openFilesLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return uint64(limit.Cur)
}
