package writeguard

import "golang.org/x/sys/unix"

// birthTime returns when the file at path, which may be a link, was created, in Unix
// nanoseconds. It returns 0 if the file system does not record that. A new file can get
// the inode number of a removed one, but not its time.
func birthTime(path string) int64 {
	var file unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &file)
	if err != nil || file.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return file.Btime.Sec*1e9 + int64(file.Btime.Nsec)
}
