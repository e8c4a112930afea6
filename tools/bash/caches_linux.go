package main

import (
	"io/fs"
	"syscall"
	"time"
)

// lastUse is when a file was last written, or as far as the system notes it,
// read. Looking through directories reads them, so that theirs say nothing.
func lastUse(info fs.FileInfo) time.Time {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
		if read := time.Unix(sys.Atim.Unix()); read.After(info.ModTime()) {
			return read
		}
	}
	return info.ModTime()
}
