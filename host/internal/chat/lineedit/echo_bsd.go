//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package lineedit

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// flushInput discards the keys that were typed and not read.
func flushInput(fd int) {
	const read = 1                                    // FREAD of <sys/fcntl.h>
	unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read) //nolint:errcheck // on an error the keys count as an answer
}
