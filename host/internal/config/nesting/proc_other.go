//go:build !linux

package nesting

// ancestors returns none: without /proc, only Variable names the hosts above.
func ancestors(func(args, env []string, dir string) []string) []Host { return nil }

// startTime returns 0 for every process: this system has no /proc.
func startTime(int) string { return "0" }
