//go:build !linux

package main

import (
	"io/fs"
	"time"
)

// lastUse returns the time of a file's last write.
func lastUse(info fs.FileInfo) time.Time { return info.ModTime() }
