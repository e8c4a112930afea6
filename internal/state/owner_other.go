//go:build !unix

package state

import "io/fs"

// Where modes do not protect a directory, its place in the user's profile
// does.
const posixModes = false

const noFollow = 0

func ours(fs.FileInfo) bool { return true }
