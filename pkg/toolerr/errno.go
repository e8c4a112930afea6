package toolerr

import (
	"errors"
	"syscall"
)

// codeOfErrno returns the code for an error number of the system that the
// errors of io/fs do not cover; "" for any other error.
func codeOfErrno(err error) Code {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return NoSpace
	case errors.Is(err, syscall.EROFS):
		return ReadOnly
	case errors.Is(err, syscall.ENOTDIR):
		return NotADirectory
	case errors.Is(err, syscall.EISDIR):
		return IsADirectory
	case errors.Is(err, syscall.EFBIG):
		return TooLarge
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return TransportError
	}
	return ""
}
