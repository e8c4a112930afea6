//go:build linux && !(amd64 || arm64)

package sandbox

import "golang.org/x/sys/unix"

// fstatCached is unix.Fstat: this processor has no faster way.
func fstatCached(fd int, st *unix.Stat_t) error { return unix.Fstat(fd, st) }

// closeCached is unix.Close: this processor has no faster way.
func closeCached(fd int) error { return unix.Close(fd) }
