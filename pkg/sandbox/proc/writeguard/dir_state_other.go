//go:build !linux

package writeguard

import "os"

func recordsEveryChange(string) bool { return false }

func readDirState(path string) (state DirState, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return state, false
	}
	return DirState{Changed: info.ModTime().UnixNano(), Node: deviceAndInode(info)}, true
}
