package retry

import (
	"errors"
	"net/http"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Retryable reports whether an error may be transient: its code is
// TRANSPORT_ERROR, RATE_LIMITED, TIMEOUT or SERVER_OFFLINE, and no HTTP status
// says that the request itself is wrong.
func Retryable(err error) bool {
	switch toolerr.CodeOf(err) {
	case toolerr.TransportError, toolerr.RateLimited, toolerr.Timeout, toolerr.ServerOffline:
		return !isClientFault(err)
	}
	return false
}

// isClientFault reports whether an HTTP server refused the request for good: a
// status from 400 to 499, except those that ask to try later.
func isClientFault(err error) bool {
	var withStatus interface{ StatusCode() int }
	if !errors.As(err, &withStatus) {
		return false
	}
	status := withStatus.StatusCode()
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// permanentError marks an error as not retryable.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// Permanent returns err marked as not retryable, whatever its code.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err is, or wraps, an error marked with Permanent.
func IsPermanent(err error) bool { return errors.As(err, new(*permanentError)) }
