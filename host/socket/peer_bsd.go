//go:build darwin || freebsd

package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user at the other end. On an error it is nobody.
func peerUID(conn *net.UnixConn) (uid int, known bool) {
	uid = -1
	raw, err := conn.SyscallConn()
	if err != nil {
		return uid, true
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	if err != nil {
		uid = -1
	}
	return uid, true
}
