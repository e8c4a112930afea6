//go:build !linux && !darwin

package sandbox

// localPath would report whether a path is on a file system that is stored
// here; that is not known.
func localPath(string) bool { return false }
