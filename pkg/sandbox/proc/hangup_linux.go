package proc

import "golang.org/x/sys/unix"

// hangUp closes the sending side of the control socket. The supervisor then
// kills all processes of the command at once, without TERM; its last reports
// can still be received.
func (s *supervisor) hangUp() {
	if raw, err := s.control.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}
