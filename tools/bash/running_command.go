package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// backgroundWait is the time that a call with run_in_background waits,
	// so that it can report an immediate failure.
	backgroundWait = 150 * time.Millisecond
	// idleTime is the time without output after which a command that
	// printed a possible prompt counts as waiting for input.
	idleTime = time.Second
)

// runningCommand is a command that a call waits for, until it ends or becomes a
// job.
type runningCommand struct {
	tool    *bashTool
	fs      *sandbox.FS
	watch   *viewWatch // of the files that the client viewed
	args    arguments
	verdict policy.Verdict // of the policy
	report  proc.Report    // of the self-test
	start   commandStart   // state at the beginning
	process *proc.Process
	layer   *pendingLayer // of its changes; nil: it writes into the roots
	output  *proc.Output
	started time.Time
	timeout time.Duration // 0: none
}

// waitForEnd waits for the end of the command and returns the result. After
// handOverAfter, or if the command seems to wait for input, it makes the
// command a job.
func (r *runningCommand) waitForEnd(ctx context.Context, handOverAfter time.Duration) (*mcpkit.Result, error) {
	timer := time.NewTimer(handOverAfter)
	defer timer.Stop()
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	quiet := waitDetector{output: r.output, process: r.process}
	overdue := false // waited longer than handOverAfter, but there was no room for a job
	for {
		select {
		case <-r.process.Done():
			return r.endedResult(ctx)
		case <-ctx.Done():
			return r.endCancelled(ctx)
		case <-timer.C:
			overdue = true
		case <-look.C:
			if w := quiet.check(); w.isSet() {
				if result, ok, err := r.handleInputWait(ctx, w); ok {
					return result, err
				}
			}
			r.reportProgress(ctx)
		}
		if overdue && !r.hasEnded() {
			if result, ok := r.makeJob(ctx, inputWait{}); ok {
				return result, nil
			}
		}
	}
}

// hasEnded reports whether the command has ended.
func (r *runningCommand) hasEnded() bool {
	select {
	case <-r.process.Done():
		return true
	default:
		return false
	}
}

// reportProgress tells the client that the command is still running.
func (r *runningCommand) reportProgress(ctx context.Context) {
	after := time.Since(r.started)
	message := formatDuration(after) + ", no output yet"
	if n := r.output.Lines(); n > 0 {
		message = fmt.Sprintf("%s, %s", formatDuration(after), textfmt.Count(n, "line"))
	}
	if line := newestText(r.output); line != "" {
		message += ": " + shorten(line, 100)
	}
	mcpkit.Progress(ctx, after.Seconds(), 0, message)
}

// handleInputWait answers for a command that waits for input: it becomes a job,
// which the caller can manage. A one-shot call has no later calls to manage a
// job, so there a command that waits for a terminal is ended. ok is false if
// the call should keep waiting.
func (r *runningCommand) handleInputWait(ctx context.Context, w inputWait) (result *mcpkit.Result, ok bool, err error) {
	if wire.RawParams(ctx) != nil {
		result, ok = r.makeJob(ctx, w)
		return result, ok, nil
	}
	if !w.terminal {
		return nil, false, nil
	}
	mcpkit.NoteFirstf(ctx, "killed, because it waited for a terminal (%s), which commands do not have: %s", w.programText(r.args.Command), w.advice(r.args.Command))
	r.process.Stop()
	result, err = r.endedResult(ctx)
	return result, true, err
}

// endCancelled ends the command of a cancelled call, and returns the call's
// result. If the server must end at once, it returns CANCELLED, and close ends the
// command.
func (r *runningCommand) endCancelled(ctx context.Context) (*mcpkit.Result, error) {
	defer r.output.Close()
	if isServerEnd(ctx) {
		r.tool.requestImmediateEnd() // close ends the process, at once
		return nil, toolerr.New(toolerr.Cancelled, "the server is ending")
	}
	r.process.Stop()
	<-r.process.Done()
	result, err := r.endedResult(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	return result, err
}

// endedResult returns the result of a command that has ended, and stores the
// session's state for the next command. The error is TIMEOUT if the command
// exceeded its timeout.
func (r *runningCommand) endedResult(ctx context.Context) (*mcpkit.Result, error) {
	result := r.process.Wait()
	defer r.output.Close()
	pending := r.layer.describe(r.fs)
	if result.Undo != "" {
		r.tool.undos.pruneInBackground()
	}
	dir, notes := r.tool.sessions.storeState(r.fs, &r.start, r.process.Environ(), r.tool.sessionFilter(r.fs), result.Report)
	for _, note := range append(r.start.notes, notes...) {
		mcpkit.Notef(ctx, "%s", note)
	}
	if len(result.Report) == 0 && mayChangeSession(r.args.Command) && result.Ending == proc.Exited {
		mcpkit.Notef(ctx, "the shell did not finish (exec, or a signal): changes of the directory and variables are not kept")
	}
	if len(result.RefusedVars) > 0 {
		mcpkit.Notef(ctx, "env: not passed (they look like secrets, change how programs run, or are too large): %s (the user can allow a secret with --pass-secret NAME)", shorten(strings.Join(result.RefusedVars, ", "), 300))
	}
	m := r.endedMeta(result)
	m.Cwd = r.fs.Display(dir)
	foot := r.footer(result, dir, &m)
	text := r.tool.renderOutput(r.fs, r.output, mcpkit.Budget(ctx)-len(foot)-noteBytes, &m)
	if hint := r.networkHint(result, text.text); hint != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + hint + "\n"
	}
	if hint := protectedHint(result.Protected, text.text, r.start.dir, r.fs); hint != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + hint + "\n"
	}
	if hint := r.layer.renameHint(text.text); hint != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + hint + "\n"
	}
	if pending != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + pending + "\n"
	}
	if words := text.describe(); words != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + words + "\n"
	}
	answer := &mcpkit.Result{Text: joinLines(text.text, foot), Meta: m, ExitStatus: result.ExitCode}
	if result.ExitCode < 0 { // unknown
		answer.ExitStatus = mcpkit.ExitFail
	}
	if result.Ending == proc.TimedOut {
		return answer, toolerr.New(toolerr.Timeout, "the command timed out after %s and was killed, with all processes that it started; set a longer timeout (milliseconds, at most %d), or use run_in_background. Its output:",
			formatDuration(r.timeout), maxTimeout.Milliseconds())
	}
	return answer, nil
}

// mayChangeSession reports whether a command may be meant to change the
// session's directory or variables.
func mayChangeSession(command string) bool {
	for _, word := range []string{"cd ", "pushd", "export ", "declare -x", "source "} {
		if strings.Contains(command, word) {
			return true
		}
	}
	return false
}

// makeJob makes the command a job and returns the call's answer, which names the job. ok
// is false if there is no room for a job: the call then keeps waiting. w is the input
// that the command waits for; the zero value: none.
func (r *runningCommand) makeJob(ctx context.Context, w inputWait) (result *mcpkit.Result, ok bool) {
	j, ok := r.tool.jobs.add(r)
	if !ok {
		return nil, false
	}
	for _, note := range r.start.notes {
		mcpkit.Notef(ctx, "%s", note)
	}
	m := j.meta()
	text := r.tool.outputSoFar(j, &m, mcpkit.Budget(ctx)-noteBytes)
	foot := fmt.Sprintf("still running after %s as job %s · cursor %d", formatDuration(time.Since(r.started)), j.id, m.Cursor)
	if r.timeout > 0 {
		foot += fmt.Sprintf(" · will be killed at %s", formatDuration(r.timeout))
	}
	foot += " · " + sandboxText(r.report.Level, r.tool.config.Network) + "\n"
	prompt := w.line
	switch {
	case w.terminal && r.args.Background:
		foot += fmt.Sprintf("It seems to wait for a terminal (%s), which it does not have. Input from bash_job {\"action\":\"write\"} may reach it; otherwise kill it with bash_job {\"action\":\"kill\",\"job_id\":%q}. Instead: %s.\n",
			w.programText(r.args.Command), j.id, w.advice(r.args.Command))
	case w.terminal:
		foot += fmt.Sprintf("It seems to wait for a terminal (%s), which commands do not have, and there is no interactive input: kill it with bash_job {\"action\":\"kill\",\"job_id\":%q}. Instead: %s.\n",
			w.programText(r.args.Command), j.id, w.advice(r.args.Command))
	case prompt != "" && r.args.Background:
		foot += fmt.Sprintf("It seems to wait for an answer (%q): give it with bash_job {\"action\":\"write\",\"job_id\":%q,\"input\":\"…\\n\"}, or kill the job.\n", prompt, j.id)
	case prompt != "":
		foot += fmt.Sprintf("It seems to wait for an answer (%q), but its standard input is closed and there is no interactive input: kill it with bash_job {\"action\":\"kill\",\"job_id\":%q}, "+
			"then run it again with an option that does not ask, with the answer in stdin, or with run_in_background, so that bash_job can write to it.\n", prompt, j.id)
	default:
		foot += fmt.Sprintf("To continue: bash_job {\"action\":\"poll\",\"job_id\":%q,\"wait_ms\":40000}\n", j.id)
	}
	return &mcpkit.Result{Text: joinLines(text, foot), Meta: m}, true
}
