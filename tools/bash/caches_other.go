//go:build !linux

package main

import (
	"io/fs"
	"time"
)

// lastUse is when a file was last written.
func lastUse(info fs.FileInfo) time.Time { return info.ModTime() }
