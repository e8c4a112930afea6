package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// writeInput sends input to the job, after asking the user if the user was
// asked about the job's command. It returns CONFLICT for a job that has ended or takes no
// input, and if the job does not read within two seconds; the input then stays pending.
// It returns MISSING_PARAMETER for no input, and the errors of askUser.
func (j *job) writeInput(ctx context.Context, input string) error {
	if input == "" {
		return toolerr.New(toolerr.MissingParameter, "input is missing: give the text to write, with \\n for Enter")
	}
	if j.hasEnded() {
		return toolerr.New(toolerr.Conflict, "job %s has ended (%s): nothing can be written to it", j.id, j.stateText())
	}
	if !j.args.Background {
		return toolerr.New(toolerr.Conflict, "job %s was not started with run_in_background, so its standard input is closed: kill it, and start it again with run_in_background, or with the input in stdin", j.id)
	}
	if j.verdict.Decision == policy.Ask && input != endOfInput {
		if err := askUser(ctx, j.verdict, inputQuestion(j, input)); err != nil {
			return err
		}
	}
	select {
	case j.inputSlot <- struct{}{}:
	default:
		return toolerr.New(toolerr.Conflict, "job %s has not read the earlier input yet, so this input was not written: poll the job, then write again", j.id)
	}
	done := make(chan error, 1)
	go func() { // ends with the job
		defer func() { <-j.inputSlot }()
		text, last := strings.CutSuffix(input, endOfInput)
		var err error
		if text != "" {
			err = j.process.WriteStdin([]byte(text))
		}
		if last && err == nil {
			j.process.CloseStdin()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(2 * time.Second):
		return toolerr.New(toolerr.Conflict, "job %s is not reading its input now; the written text is kept until it does", j.id)
	}
}

// sendSignal sends the signal with a name to the job. It returns INVALID_PARAMS for an
// unknown name, CONFLICT if the job has ended, and EXECUTION_ERROR if the system
// refuses.
func (j *job) sendSignal(name string) error {
	number, ok := parseSignal(name)
	if !ok {
		return toolerr.New(toolerr.InvalidParams, "input must be the name of a signal, such as INT, TERM, HUP or USR1, not %q", shorten(escapeUnsafe(name).text, 40))
	}
	if err := j.process.Signal(number); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return toolerr.New(toolerr.Conflict, "job %s has ended (%s): no signal can be sent to it", j.id, j.stateText())
		}
		return toolerr.New(toolerr.ExecutionError, "the signal could not be sent: %w", err)
	}
	return nil
}

// endOfInput is the character of Ctrl-D: at the end of an input it closes
// standard input.
const endOfInput = "\x04"
