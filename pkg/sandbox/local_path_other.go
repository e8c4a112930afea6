//go:build !linux && !darwin

package sandbox

// localPath returns false: this system does not tell whether a file system is local.
func localPath(string) bool { return false }
