//go:build !linux && !darwin && !freebsd && !netbsd

package sandbox

import "io/fs"

// openNonblock is 0: no file in a directory of this system blocks when it is opened.
const openNonblock = 0

// statOfInfo converts an fs.FileInfo. This system has no change time, so Stat holds
// the modification time instead, and no numeric identity: os.SameFile compares files.
func statOfInfo(info fs.FileInfo) Stat {
	return Stat{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime(), ChangeTime: info.ModTime()}
}
