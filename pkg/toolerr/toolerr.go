// Package toolerr is the error type of every tool: a stable code for programs,
// a text for the model (what failed, where, and what to do next), and small
// metadata for programs.
//
// Every other package of this module may import it; it imports none of them.
package toolerr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
)

// Error is a failure with a code and a text that helps the caller to act. It is
// immutable.
type Error struct {
	code  Code
	err   error          // carries the text, and the cause where %w named one
	extra map[string]any // values of With, by key
}

// New returns an error with a code and a text. The text is formatted as by
// fmt.Errorf; with %w, errors.Is and errors.As find the cause.
func New(code Code, format string, args ...any) *Error {
	return &Error{code: code, err: fmt.Errorf(format, args...)}
}

// With returns a copy of e with one more value for the result's
// _meta["toolroom/result"]; an existing value of that key is replaced. Values
// should be small: counts, names, the next offset.
func (e *Error) With(key string, value any) *Error {
	extra := maps.Clone(e.extra)
	if extra == nil {
		extra = make(map[string]any, 1)
	}
	extra[key] = value
	return &Error{code: e.code, err: e.err, extra: extra}
}

// Error returns the text without the code.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause given to New with %w, or nil.
func (e *Error) Unwrap() error { return errors.Unwrap(e.err) }

// Code returns the code.
func (e *Error) Code() Code { return e.code }

// Extra returns a copy of the values given to With; nil if there are none.
func (e *Error) Extra() map[string]any { return maps.Clone(e.extra) }

// ErrInvalidArguments matches, with errors.Is, every error that reports invalid
// arguments of a call: those with the code INVALID_PARAMS or MISSING_PARAMETER.
var ErrInvalidArguments = errors.New("the arguments are invalid")

// Is makes errors.Is compare only codes, as in errors.Is(err, toolerr.New(code,
// "")), and match ErrInvalidArguments.
func (e *Error) Is(target error) bool {
	if target == ErrInvalidArguments {
		return e.code == InvalidParams || e.code == MissingParameter
	}
	var t *Error
	return errors.As(target, &t) && t.Error() == "" && t.code == e.code
}

// Is reports whether CodeOf(err) is code. It is false for a nil error.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// CodeOf returns the code of an error: the code of the Error that err is or
// wraps; otherwise a code derived from the context's or the system's error;
// otherwise EXECUTION_ERROR. It returns "" for nil.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrExist):
		return Exists
	case errors.Is(err, fs.ErrPermission):
		return PermissionDenied
	}
	if code := codeOfErrno(err); code != "" {
		return code
	}
	return ExecutionError
}
