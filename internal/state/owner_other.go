//go:build !unix

package state

import "io/fs"

// posixModes is false: modes do not protect a directory on this system; its
// location in the user's profile does.
const posixModes = false

const noFollow = 0

func ownedByUser(fs.FileInfo) bool { return true }
