package control

import (
	"net"

	"golang.org/x/sys/unix"
)

// PeerPID returns the id of the process at the other end of a connection to a unix
// socket; 0 if it is unknown.
func PeerPID(conn net.Conn) (pid int) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // then it is unknown
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// peerOfDescriptor returns the user id of the process at the other end of a socket; see
// unix(7).
func peerOfDescriptor(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
