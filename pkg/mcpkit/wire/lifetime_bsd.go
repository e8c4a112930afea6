//go:build unix && !linux

package wire

// openParentPidfd returns -1: this system has no such descriptor, so
// waitForExitReason polls.
func openParentPidfd(int) int { return -1 }
