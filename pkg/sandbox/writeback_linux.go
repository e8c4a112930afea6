package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// startWriteback makes the system start to write a part of a file to the disk. It does
// not wait, and ignores errors: the sync that follows reports them.
func startWriteback(f syscall.Conn, from, size int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SyncFileRange(int(fd), from, size, unix.SYNC_FILE_RANGE_WRITE)
	})
}
