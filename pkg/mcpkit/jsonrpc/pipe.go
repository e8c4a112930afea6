package jsonrpc

import "syscall"

// UsualPipe is the default capacity of a pipe, in bytes.
const UsualPipe = 64 << 10

// Widen enlarges a pipe, so that a large message passes with few switches
// between writer and reader. It does nothing for other files, on other systems,
// or if the system refuses because the user has too many large pipes. Callers
// must bound the number of pipes that they widen: above that limit, the user's
// other programs get pipes of one page.
func Widen(pipe any) {
	if file, ok := pipe.(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			raw.Control(widen) //nolint:errcheck // it only costs time
		}
	}
}
