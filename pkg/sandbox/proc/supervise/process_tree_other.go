//go:build !linux && !windows

package supervise

// KillMarked does nothing: the processes are found in the process table.
func KillMarked(string) int { return 0 }
