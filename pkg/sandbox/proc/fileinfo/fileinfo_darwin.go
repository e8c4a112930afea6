package fileinfo

import (
	"os"
	"syscall"
	"time"
)

// ChangeTime returns a file's time of status change (ctime), which programs cannot set.
func ChangeTime(info os.FileInfo) time.Time {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(sys.Ctimespec.Unix())
	}
	return info.ModTime()
}

// Links returns the number of hard links of a file.
func Links(info os.FileInfo) uint64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink)
	}
	return 1
}
