package proc

import "golang.org/x/sys/unix"

// hangUp lets the supervisor see the end of the socket, at which it kills
// everything at once; what it still has to say is heard.
func (s *supervisor) hangUp() {
	if raw, err := s.control.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}
