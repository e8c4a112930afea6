//go:build !linux && !darwin && !freebsd && !netbsd

package sandbox

import "io/fs"

// openNonblock: no name in a directory blocks when it is opened here.
const openNonblock = 0

// statOfInfo converts the standard library's form. This system tells neither
// the change time, for which the modification time stands in, nor the
// identity in numbers: os.SameFile compares files.
func statOfInfo(info fs.FileInfo) Stat {
	return Stat{Mode: info.Mode(), Size: info.Size(), ModTime: info.ModTime(), ChangeTime: info.ModTime()}
}
