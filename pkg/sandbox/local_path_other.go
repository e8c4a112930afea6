//go:build !linux && !darwin

package sandbox

// isLocalPath returns false: this system does not tell whether a file system is local.
func isLocalPath(string) bool { return false }
