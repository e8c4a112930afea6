// Package fileinfo returns properties of files that os.FileInfo does not show
// on every system.
package fileinfo

import "os"

// IsSameDir reports whether root is open on the directory that info describes.
func IsSameDir(root *os.Root, info os.FileInfo) bool {
	own, err := root.Stat(".")
	return err == nil && os.SameFile(own, info)
}

// IsPseudoDir reports whether path is a directory whose files the kernel
// generates, or /run, of which each command has its own. path is absolute.
func IsPseudoDir(path string) bool {
	return path == "/proc" || path == "/sys" || path == "/dev" || path == "/run"
}
