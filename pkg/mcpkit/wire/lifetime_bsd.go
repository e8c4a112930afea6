//go:build unix && !linux

package wire

// openParent returns -1: this system has no such descriptor, so watch polls.
func openParent(int) int { return -1 }
