//go:build unix

package gateway

import "syscall"

// descriptors is how many descriptors this process may have; 0: unknown.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur)
}
