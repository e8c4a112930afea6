package jsonrpc

import "syscall"

// DefaultPipeSize is the default capacity of a pipe, in bytes.
const DefaultPipeSize = 64 << 10

// EnlargePipe enlarges a pipe, so that a large message passes with few switches
// between writer and reader. It does nothing for other files, on systems other
// than Linux, or if the system refuses because the user has too many large
// pipes. Bound the number of pipes that you enlarge: above that limit, the
// user's other programs get pipes of one page.
func EnlargePipe(pipe any) {
	if file, ok := pipe.(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			raw.Control(enlargePipeFD) //nolint:errcheck // it only costs time
		}
	}
}
