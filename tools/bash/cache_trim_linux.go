package main

import (
	"io/fs"
	"syscall"
	"time"
)

// lastUse returns the time of a file's last write or recorded read. Measuring
// reads directories, so their read times are ignored.
func lastUse(info fs.FileInfo) time.Time {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
		if read := time.Unix(sys.Atim.Unix()); read.After(info.ModTime()) {
			return read
		}
	}
	return info.ModTime()
}
