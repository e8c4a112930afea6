package jsonrpc

import "syscall"

// UsualPipe is what a pipe holds unless the system was asked for more.
const UsualPipe = 64 << 10

// Widen lets a pipe hold a large message, so that it passes in few turns of
// its writer and its reader. What is no pipe, or on a system that cannot,
// stays as it is; so does a pipe when the system refuses, because the user has
// too many such pipes. Whoever widens several bounds their number: with more
// of them than that the user's other programs get pipes of a page.
func Widen(pipe any) {
	if file, ok := pipe.(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			raw.Control(widen) //nolint:errcheck // it only costs time
		}
	}
}
