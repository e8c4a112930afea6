//go:build linux || darwin || freebsd

package control

import "net"

// peerUID returns the user id at the other end, and true. After an error it is -1, which
// belongs to no user.
func peerUID(conn *net.UnixConn) (uid int, known bool) {
	uid = -1
	raw, err := conn.SyscallConn()
	if err != nil {
		return uid, true
	}
	err = raw.Control(func(fd uintptr) {
		if peer, err := peerOfDescriptor(int(fd)); err == nil {
			uid = peer
		}
	})
	if err != nil {
		uid = -1
	}
	return uid, true
}
