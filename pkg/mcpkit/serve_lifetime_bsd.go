//go:build unix && !linux

package mcpkit

// openParent returns -1: this system has no such descriptor, so watch polls.
func openParent(int) int { return -1 }
