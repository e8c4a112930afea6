package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// startWriteback asks the system to begin writing a part of a file to the
// disk. It waits for nothing, and that it fails does not matter: the sync
// that follows tells.
func startWriteback(f syscall.Conn, from, size int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SyncFileRange(int(fd), from, size, unix.SYNC_FILE_RANGE_WRITE)
	})
}
