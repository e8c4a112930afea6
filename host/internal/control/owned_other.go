//go:build !unix

package control

import "io/fs"

// isOwn reports true: this system has no owner in fs.FileInfo.
func isOwn(fs.FileInfo) bool { return true }
