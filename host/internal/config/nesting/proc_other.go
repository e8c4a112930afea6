//go:build !linux

package nesting

// ancestors finds none: only the variable tells of the hosts above.
func ancestors(func(args, env []string, dir string) []string) []Host { return nil }

func startTime(int) string { return "0" }
