//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package writeguard

import (
	"os"
)

// flock always succeeds: no level confines commands on this system.
func flock(*os.File, int) bool { return true }

const (
	lockShared = iota
	lockExclusive
	lockNone
)
