//go:build !unix

package state

import "io/fs"

// hasPosixModes is false: modes do not protect a directory on this system; its
// location in the user's profile does.
const hasPosixModes = false

// openNoFollow is 0: this system has no such flag.
const openNoFollow = 0

// isOwnedByUser returns true: owners are not looked up on this system.
func isOwnedByUser(fs.FileInfo) bool { return true }
