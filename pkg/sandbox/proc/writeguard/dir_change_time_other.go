//go:build !linux

package writeguard

import "os"

func recordsEveryChange(string) bool { return false }

func dirChangeTime(path string) (changed int64, ownerBarred, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return 0, false, false
	}
	return info.ModTime().UnixNano(), false, true
}
