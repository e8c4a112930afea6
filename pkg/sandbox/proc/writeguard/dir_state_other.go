//go:build !linux

package writeguard

import "os"

// recordsEveryChange returns false: it is not known.
func recordsEveryChange(string) bool { return false }

// readDirState reads the state of a directory, with the time of modification instead of
// the change. ok is false if path is not a directory.
func readDirState(path string) (state DirState, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return state, false
	}
	return DirState{Changed: info.ModTime().UnixNano(), Node: deviceAndInode(info)}, true
}
