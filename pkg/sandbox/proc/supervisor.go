package proc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lostSupervisorDelay is the time that the supervisor gets beyond the grace to end a
// command. Then it is killed, and the command counts as lost.
const lostSupervisorDelay = 3 * time.Second

// supervisor is a running supervisor process, before and after it gets its
// command.
type supervisor struct {
	process supervisorProcess
	pid     int         // its process id
	control controlConn // for its instructions and reports
	output  *os.File    // the pipe with the command's output; nil before the command
	level   Level
	// preparedSpec is the spec that the supervisor prepared for, or nil.
	preparedSpec    *supervise.Spec
	usedPreparation bool   // the preparation served the command
	mounts          string // the mount table when it was started, "" below L2
}

// supervisorProcess is the process of a supervisor. *os.Process implements it.
type supervisorProcess interface {
	Kill() error
	Wait() (*os.ProcessState, error)
}

// controlConn is the connection to a supervisor: a socket, as *os.File, or a
// pipe within this process.
type controlConn interface {
	io.ReadWriteCloser
	SetDeadline(t time.Time) error
}

// kill kills a supervisor that has not started a command, or whose command is
// no longer needed, and closes its files.
func (s *supervisor) kill() {
	s.control.Close()
	closeAll(s.output)
	s.process.Kill() // fails only if it has ended
	s.process.Wait()
}

// supervisorEndedEarlyError reports that a supervisor ended before it started the
// command. It unwraps to cause.
type supervisorEndedEarlyError struct{ cause error }

func (e *supervisorEndedEarlyError) Error() string {
	return "the supervisor of the command ended early: " + e.cause.Error()
}

func (e *supervisorEndedEarlyError) Unwrap() error { return e.cause }

// startTimeout bounds the time to start a command. Without it, a file system
// that does not answer would block for ever.
const startTimeout = time.Minute

// handshake sends the spec and files, and waits until the supervisor has
// started bash or reports an error. ctx and startTimeout apply until the
// supervisor is ready to start bash. After that the command counts as started,
// even if it has ended already, and the supervisor with it. It returns CANCELLED,
// TIMEOUT, the error of startError, or EXECUTION_ERROR, which wraps a
// *supervisorEndedEarlyError, if the supervisor ended early.
func (super *supervisor) handshake(ctx context.Context, s *spec, files []*os.File, reports *bufio.Reader) error {
	var mu sync.Mutex
	ready := false
	super.control.SetDeadline(time.Now().Add(startTimeout))
	defer super.control.SetDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ready {
			super.control.SetDeadline(time.Now())
		}
	})()
	first, err := super.sendSpec(s, files, reports)
	mu.Lock()
	ready = first.Ready
	mu.Unlock()
	if ready {
		super.control.SetDeadline(time.Now().Add(startTimeout))
		if supervise.ReadMessage(reports, &first) != nil {
			return nil
		}
		super.usedPreparation = first.Ahead
	}
	switch {
	case err == nil:
		return startError(first, s)
	case ctx.Err() != nil:
		return toolerr.New(toolerr.Cancelled, "the command was cancelled before it was started: %w", ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return toolerr.New(toolerr.Timeout, "the command was not started within %v: a file system that it needs may not answer", startTimeout)
	}
	return toolerr.New(toolerr.ExecutionError, "%w", &supervisorEndedEarlyError{err})
}

// sendSpec sends the spec and the files, and returns the supervisor's first
// report.
func (super *supervisor) sendSpec(s *spec, files []*os.File, reports *bufio.Reader) (first report, err error) {
	if err = super.sendFiles(supervise.AppendMessage(nil, s.WithoutShared(super.preparedSpec)), files); err == nil {
		err = supervise.ReadMessage(reports, &first)
	}
	return first, err
}

// startError returns the error for the caller of a report that bash was not started, nil
// for other reports: a *movedError if a hidden file was moved, SANDBOX_UNAVAILABLE if the
// confinement failed, EXECUTION_ERROR if only the program did not start.
func startError(r report, s *spec) error {
	if r.Error == "" {
		return nil
	}
	if r.Moved != "" {
		return &movedError{r.Moved}
	}
	code := toolerr.ExecutionError
	if s.Level != Off && !r.Program {
		code = toolerr.SandboxUnavailable
	}
	return toolerr.New(code, "the command was not started: %s", r.Error)
}
