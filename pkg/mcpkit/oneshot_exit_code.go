package mcpkit

import (
	"errors"
	"fmt"
	"io"
)

// errCallFailed is the error of a failed call whose failure has been printed.
var errCallFailed = errors.New("the call failed")

// exitStatusError is the error of a call that ran a command which failed with
// this exit status.
type exitStatusError int

func (e exitStatusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// callExitCode returns the exit code for callErr, the error of a oneShot
// method. It reports an error of printing to stderr.
func (c *Command) callExitCode(stderr io.Writer, callErr error) (exitCode int) {
	var status exitStatusError
	switch {
	case errors.As(callErr, &status):
		return int(status)
	case errors.Is(callErr, errCallFailed):
		return ExitFail // printed on stdout
	}
	return c.exitCodeAfterPrint(stderr, callErr)
}
