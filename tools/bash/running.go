package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// startup is how long a job that was asked for may fail at once.
	startup = 150 * time.Millisecond
	// idle is how long a command must print nothing after what looks like a
	// prompt to be taken for waiting.
	idle = time.Second
)

// running is a command on its way, from its start to its end or to where it
// becomes a job.
type running struct {
	shell   *shell
	fs      *sandbox.FS
	args    arguments
	verdict policy.Verdict
	report  proc.Report
	begin   start
	process *proc.Process
	output  *proc.Output
	started time.Time
	timeout time.Duration
}

// attend waits for the end of the command, for patience at most.
func (r *running) attend(ctx context.Context, patience time.Duration) (*mcpkit.Result, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	quiet := quietness{output: r.output}
	overdue := false // it would be a job, had there been room for one
	for {
		select {
		case <-r.process.Done():
			return r.ended(ctx)
		case <-ctx.Done():
			return r.abandoned(ctx)
		case <-timer.C:
			overdue = true
		case <-look.C:
			if line := quiet.prompt(); line != "" && mcpkit.RawParams(ctx) != nil {
				if result, ok := r.handOver(ctx, line); ok {
					return result, nil
				}
			}
			r.progress(ctx)
		}
		if overdue && !r.finishes() {
			if result, ok := r.handOver(ctx, ""); ok {
				return result, nil
			}
		}
	}
}

// finishes reports whether the command has just ended.
func (r *running) finishes() bool {
	select {
	case <-r.process.Done():
		return true
	default:
		return false
	}
}

// progress tells the client that the command goes on.
func (r *running) progress(ctx context.Context) {
	after := time.Since(r.started)
	mcpkit.Progress(ctx, after.Seconds(), 0, fmt.Sprintf("%s, %d lines: %s", seconds(after), r.output.Lines(), shorten(lastLine(r.output), 100)))
}

// abandoned ends the command of a call that nobody waits for any more.
func (r *running) abandoned(ctx context.Context) (*mcpkit.Result, error) {
	defer r.output.Close()
	if stopping(ctx) {
		r.shell.stop() // close ends it, at once
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

// ended tells of a command that has ended.
func (r *running) ended(ctx context.Context) (*mcpkit.Result, error) {
	result := r.process.Wait()
	defer r.output.Close()
	dir, notes := r.shell.sessions.end(r.fs, &r.begin, r.process.Environ(), r.shell.filter(r.fs), result.Report)
	for _, note := range append(r.begin.notes, notes...) {
		mcpkit.Notef(ctx, "%s", note)
	}
	if len(result.Report) == 0 && steers(r.args.Command) && result.Ending == proc.Exited {
		mcpkit.Notef(ctx, "the shell did not come to its end (exec, or a signal): directory and variables stay as they were before")
	}
	if len(result.Refused) > 0 {
		mcpkit.Notef(ctx, "env: not passed, since they look like secrets or steer programs: %s (--pass-secret NAME passes a secret)", shorten(strings.Join(result.Refused, ", "), 300))
	}
	m := r.meta(result)
	m.Cwd = r.fs.Display(dir)
	foot := r.footer(result, dir, &m)
	text := r.shell.show(r.output, mcpkit.Budget(ctx)-len(foot)-noteRoom, &m)
	if hint := r.networkHint(result, text.text); hint != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · " + hint + "\n"
	}
	if words := text.words(); words != "" {
		foot = strings.TrimSuffix(foot, "\n") + " · made visible: " + words + "\n"
	}
	answer := &mcpkit.Result{Text: joinLines(text.text, foot), Meta: m}
	if result.Ending == proc.TimedOut {
		return answer, toolerr.New(toolerr.Timeout, "the command was ended with all it started after %s, its timeout; give it more with timeout (milliseconds, at most %d), or run_in_background. What it printed:",
			seconds(r.timeout), maxTimeout.Milliseconds())
	}
	return answer, nil
}

// steers reports whether a command might mean to change the session.
func steers(command string) bool {
	for _, word := range []string{"cd ", "pushd", "export ", "declare -x", "source "} {
		if strings.Contains(command, word) {
			return true
		}
	}
	return false
}

// handOver makes a job of the command. ok is false where there is no room for
// another: then the call goes on waiting.
func (r *running) handOver(ctx context.Context, prompt string) (result *mcpkit.Result, ok bool) {
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
		foot += fmt.Sprintf(" · is ended at %s", seconds(r.timeout))
	}
	foot += " · " + sandboxWords(r.report.Level, r.shell.config.Network) + "\n"
	switch {
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

// quietness finds out that an output has paused at a prompt.
type quietness struct {
	output *proc.Output
	size   int64
	since  time.Time
}

// prompt returns the last line if it has been one for a while.
func (q *quietness) prompt() string {
	size := q.output.Size()
	if size != q.size || q.since.IsZero() {
		q.size, q.since = size, time.Now()
		return ""
	}
	if size == 0 || time.Since(q.since) < idle {
		return ""
	}
	return promptIn(q.output)
}

// promptIn returns the last line of an output if somebody seems to be asked
// something by it.
func promptIn(o *proc.Output) string {
	line := lastLine(o)
	if line == "" || !prompt().MatchString(line) {
		return ""
	}
	return shorten(line, 120)
}

// lastLine is what stands behind the last line end, or the line before it if
// that is nothing.
func lastLine(o *proc.Output) string {
	const most = 300
	buf := make([]byte, most)
	n, _, err := o.Read(max(0, o.Size()-most), buf)
	if err != nil {
		return ""
	}
	text := strings.ToValidUTF8(string(buf[:n]), "")
	return safe(strings.TrimLeft(text[strings.LastIndexAny(text, "\n\r")+1:], " \t")).text
}
