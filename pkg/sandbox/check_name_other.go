//go:build !windows

package sandbox

// checkSystemName: Unix takes any name.
func checkSystemName(string) error { return nil }
