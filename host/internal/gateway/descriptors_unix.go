//go:build unix

package gateway

import "syscall"

// descriptorLimit returns the limit of open descriptors of this process, 0 if it is
// unknown.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur)
}
