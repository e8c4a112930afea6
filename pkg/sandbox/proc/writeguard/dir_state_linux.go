package writeguard

import "golang.org/x/sys/unix"

// recordsEveryChange reports whether the file system of dir updates a file's
// times at each change, including writes through a mapping. tmpfs does not.
func recordsEveryChange(dir string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return false
	}
	switch int64(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}

// readDirState reads the state of a directory. ok is false if path is not a
// directory.
func readDirState(path string) (state DirState, ok bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return state, false
	}
	return DirState{Changed: st.Ctim.Nano(), Node: [2]uint64{uint64(st.Dev), uint64(st.Ino)}, Closed: st.Mode&0o500 != 0o500}, true
}
