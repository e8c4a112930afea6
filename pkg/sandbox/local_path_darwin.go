package sandbox

import "golang.org/x/sys/unix"

// isLocalPath reports whether a path is on a file system of this machine (statfs(2),
// MNT_LOCAL).
func isLocalPath(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.MNT_LOCAL != 0
}
