//go:build !linux && !darwin && !freebsd && !netbsd

package sandbox

import "io/fs"

// openNonblock: no name in a directory blocks when it is opened here.
const openNonblock = 0

// statOfInfo converts an fs.FileInfo. This system has no change time, so that the
// modification time is used, and no numeric identity: os.SameFile compares files.
func statOfInfo(info fs.FileInfo) Stat {
	return Stat{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime(), ChangeTime: info.ModTime()}
}
