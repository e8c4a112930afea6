//go:build linux || darwin

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// hangUp closes the sending side of the control socket. The supervisor then
// kills all processes of the command at once, without TERM; its last reports
// can still be received.
func (s *supervisor) hangUp() {
	socket, ok := s.control.(*os.File)
	if !ok {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}
