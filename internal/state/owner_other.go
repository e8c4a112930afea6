//go:build !unix

package state

import "io/fs"

// hasPosixModes is false: modes do not protect a directory on this system; its
// location in the user's profile does.
const hasPosixModes = false

const openNoFollow = 0

// isOwnedByUser returns true.
func isOwnedByUser(fs.FileInfo) bool { return true }
