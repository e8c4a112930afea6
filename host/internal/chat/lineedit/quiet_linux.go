package lineedit

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// flush discards the keys that were typed and not read.
func flush(fd int) {
	unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) //nolint:errcheck // on an error the keys count as an answer
}
