package lineedit

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// flushInput discards the keys that were typed and not read.
func flushInput(fd int) {
	unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) //nolint:errcheck // on an error the keys count as an answer
}
