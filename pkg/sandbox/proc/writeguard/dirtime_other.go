//go:build !linux

package writeguard

import "os"

func keepsTimes(string) bool { return false }

func directoryChanged(path string) (changed int64, closed, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return 0, false, false
	}
	return info.ModTime().UnixNano(), false, true
}
