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
	// startup is the time that a call with run_in_background waits, so that it
	// can report an immediate failure.
	startup = 150 * time.Millisecond
	// idle is the time without output after which a command that printed a
	// possible prompt counts as waiting for input.
	idle = time.Second
)

// running is a running command, until it ends or becomes a job.
type running struct {
	shell   *shell
	fs      *sandbox.FS
	watch   *watch
	args    arguments
	verdict policy.Verdict
	report  proc.Report
	begin   start
	process *proc.Process
	layer   *apart
	output  *proc.Output
	started time.Time
	timeout time.Duration
}

// attend waits for the end of the command. After patience, or if the command
// seems stuck, it makes the command a job.
func (r *running) attend(ctx context.Context, patience time.Duration) (*mcpkit.Result, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	quiet := quietness{output: r.output, process: r.process}
	overdue := false // waited longer than patience, but there was no room for a job
	for {
		select {
		case <-r.process.Done():
			return r.ended(ctx)
		case <-ctx.Done():
			return r.abandoned(ctx)
		case <-timer.C:
			overdue = true
		case <-look.C:
			if w := quiet.want(); w.any() {
				if result, ok, err := r.stuck(ctx, w); ok {
					return result, err
				}
			}
			r.progress(ctx)
		}
		if overdue && !r.finishes() {
			if result, ok := r.handOver(ctx, want{}); ok {
				return result, nil
			}
		}
	}
}

// finishes reports whether the command has ended.
func (r *running) finishes() bool {
	select {
	case <-r.process.Done():
		return true
	default:
		return false
	}
}

// progress reports to the client that the command is still running.
func (r *running) progress(ctx context.Context) {
	after := time.Since(r.started)
	message := seconds(after) + ", no output yet"
	if n := r.output.Lines(); n > 0 {
		message = fmt.Sprintf("%s, %s", seconds(after), textfmt.Count(n, "line"))
	}
	if line := newestText(r.output); line != "" {
		message += ": " + shorten(line, 100)
	}
	mcpkit.Progress(ctx, after.Seconds(), 0, message)
}

// stuck answers for a command that waits for input: it becomes a job, which the
// caller can manage. A one-shot call has no later calls to manage a job, so
// there a command that waits for a terminal is ended. ok is false if the call
// should keep waiting.
func (r *running) stuck(ctx context.Context, w want) (result *mcpkit.Result, ok bool, err error) {
	if wire.RawParams(ctx) != nil {
		result, ok = r.handOver(ctx, w)
		return result, ok, nil
	}
	if !w.terminal {
		return nil, false, nil
	}
	mcpkit.NoteFirstf(ctx, "ended, since it waited for a terminal (%s), which commands do not have: %s", w.name(r.args.Command), w.instead(r.args.Command))
	r.process.Kill()
	result, err = r.ended(ctx)
	return result, true, err
}

// abandoned ends the command of a cancelled call.
func (r *running) abandoned(ctx context.Context) (*mcpkit.Result, error) {
	defer r.output.Close()
	if stopping(ctx) {
		r.shell.stop() // close ends the process, at once
		return nil, toolerr.New(toolerr.Cancelled, "the server is ending")
	}
	r.process.Kill()
	<-r.process.Done()
	result, err := r.ended(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	return result, err
}

// ended returns the result of a command that has ended.
func (r *running) ended(ctx context.Context) (*mcpkit.Result, error) {
	result := r.process.Wait()
	defer r.output.Close()
	pending := r.layer.words(r.fs)
	if result.Undo != "" {
		r.shell.undos.keepBounds()
	}
	dir, notes := r.shell.sessions.end(r.fs, &r.begin, r.process.Environ(), r.shell.filter(r.fs), result.Report)
	for _, note := range append(r.begin.notes, notes...) {
		mcpkit.Notef(ctx, "%s", note)
	}
	if len(result.Report) == 0 && steers(r.args.Command) && result.Ending == proc.Exited {
		mcpkit.Notef(ctx, "the shell did not finish (exec, or a signal): directory and variables are those from before the command")
	}
	if len(result.RefusedVars) > 0 {
		mcpkit.Notef(ctx, "env: not passed, since they look like secrets or steer programs: %s (--pass-secret NAME passes a secret)", shorten(strings.Join(result.RefusedVars, ", "), 300))
	}
	m := r.meta(result)
	m.Cwd = r.fs.Display(dir)
	foot := r.footer(result, dir, &m)
	text := r.shell.show(r.fs, r.output, mcpkit.Budget(ctx)-len(foot)-noteRoom, &m)
	if hint := r.networkHint(result, text.text); hint != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + hint + "\n"
	}
	if hint := protectedHint(result.Protected, text.text, r.begin.dir, r.fs); hint != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + hint + "\n"
	}
	if pending != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + pending + "\n"
	}
	if words := text.words(); words != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · made visible: " + words + "\n"
	}
	answer := &mcpkit.Result{Text: joinLines(text.text, foot), Meta: m, ExitStatus: result.ExitCode}
	if result.ExitCode < 0 { // unknown
		answer.ExitStatus = mcpkit.ExitFail
	}
	if result.Ending == proc.TimedOut {
		return answer, toolerr.New(toolerr.Timeout, "the command was ended with all it started after %s, its timeout; give it more with timeout (milliseconds, at most %d), or run_in_background. What it printed:",
			seconds(r.timeout), maxTimeout.Milliseconds())
	}
	return answer, nil
}

// steers reports whether a command may be meant to change the session.
func steers(command string) bool {
	for _, word := range []string{"cd ", "pushd", "export ", "declare -x", "source "} {
		if strings.Contains(command, word) {
			return true
		}
	}
	return false
}

// handOver makes the command a job. ok is false if there is no room for a job:
// the call then keeps waiting.
func (r *running) handOver(ctx context.Context, w want) (result *mcpkit.Result, ok bool) {
	j, ok := r.shell.jobs.add(r)
	if !ok {
		return nil, false
	}
	for _, note := range r.begin.notes {
		mcpkit.Notef(ctx, "%s", note)
	}
	m := j.meta()
	text := r.shell.showJob(j, &m, mcpkit.Budget(ctx)-noteRoom)
	foot := fmt.Sprintf("still running after %s as job %s · cursor %d", seconds(time.Since(r.started)), j.id, m.Cursor)
	if r.timeout > 0 {
		foot += fmt.Sprintf(" · will be killed at %s", seconds(r.timeout))
	}
	foot += " · " + sandboxWords(r.report.Level, r.shell.config.Network) + "\n"
	prompt := w.line
	switch {
	case w.terminal && r.args.Background:
		foot += fmt.Sprintf("It seems to wait for a terminal (%s), which it does not have. What bash_job {\"action\":\"write\"} sends may reach it; else end it with bash_job {\"action\":\"kill\",\"job_id\":%q}. Instead: %s.\n",
			w.name(r.args.Command), j.id, w.instead(r.args.Command))
	case w.terminal:
		foot += fmt.Sprintf("It seems to wait for a terminal (%s), which commands do not have, and nobody can type: end it with bash_job {\"action\":\"kill\",\"job_id\":%q}. Instead: %s.\n",
			w.name(r.args.Command), j.id, w.instead(r.args.Command))
	case prompt != "" && r.args.Background:
		foot += fmt.Sprintf("It seems to wait for an answer (%q): give it with bash_job {\"action\":\"write\",\"job_id\":%q,\"input\":\"…\\n\"}, or end it with action kill.\n", prompt, j.id)
	case prompt != "":
		foot += fmt.Sprintf("It seems to wait for an answer (%q), but its standard input is at its end, nobody can type: end it with bash_job {\"action\":\"kill\",\"job_id\":%q}, "+
			"then run it with an option that does not ask, with the answer in stdin, or with run_in_background, which bash_job can write to.\n", prompt, j.id)
	default:
		foot += fmt.Sprintf("To go on: bash_job {\"action\":\"poll\",\"job_id\":%q,\"wait_ms\":40000}\n", j.id)
	}
	return &mcpkit.Result{Text: joinLines(text, foot), Meta: m}, true
}
