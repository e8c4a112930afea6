package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// jobArguments are the arguments of bash_job without --undo and --changes.
type jobArguments struct {
	Action  string `json:"action" enum:"list,poll,write,signal,kill"`
	JobID   string `json:"job_id,omitempty" alias:"id,bash_id,shell_id,task_id,session_id" jsonschema:"required except for list"`
	Since   *int64 `json:"since,omitempty" jsonschema:"byte offset; negative: from the end"`
	WaitMS  int64  `json:"wait_ms,omitempty" alias:"yield_time_ms" min:"0" max:"50000" jsonschema:"default 0; 30000 with wait_for"`
	WaitFor string `json:"wait_for,omitempty" verbatim:"true" jsonschema:"regular expression"`
	Input   string `json:"input,omitempty" alias:"chars" verbatim:"true" jsonschema:"text (\\n: Enter, \\u0004: end of input) or signal name, e.g. INT"`

	Files []string `json:"files,omitempty" hidden:"true"`
}

// reviewArguments are the arguments of bash_job if changes are reviewed.
type reviewArguments struct {
	Action  string `json:"action" enum:"list,poll,write,signal,kill,diff,apply,discard"`
	JobID   string `json:"job_id,omitempty" alias:"id,bash_id,shell_id,task_id,session_id,changes" jsonschema:"id of a job or of changes; required except for list"`
	Since   *int64 `json:"since,omitempty" jsonschema:"byte offset; negative: from the end"`
	WaitMS  int64  `json:"wait_ms,omitempty" alias:"yield_time_ms" min:"0" max:"50000" jsonschema:"default 0; 30000 with wait_for"`
	WaitFor string `json:"wait_for,omitempty" verbatim:"true" jsonschema:"regular expression"`
	Input   string `json:"input,omitempty" alias:"chars" verbatim:"true" jsonschema:"text (\\n: Enter, \\u0004: end of input) or signal name, e.g. INT"`

	Files []string `json:"files,omitempty" alias:"file,paths,path" jsonschema:"files or directories to show or apply; default all"`
}

// undoArguments are the arguments of bash_job if changes are recorded.
type undoArguments struct {
	Action  string `json:"action" enum:"list,poll,write,signal,kill,undo"`
	JobID   string `json:"job_id,omitempty" alias:"id,bash_id,shell_id,task_id,session_id" jsonschema:"id of a job or of an undo record; required except for list and undo"`
	Since   *int64 `json:"since,omitempty" jsonschema:"byte offset; negative: from the end"`
	WaitMS  int64  `json:"wait_ms,omitempty" alias:"yield_time_ms" min:"0" max:"50000" jsonschema:"default 0; 30000 with wait_for"`
	WaitFor string `json:"wait_for,omitempty" verbatim:"true" jsonschema:"regular expression"`
	Input   string `json:"input,omitempty" alias:"chars" verbatim:"true" jsonschema:"text (\\n: Enter, \\u0004: end of input) or signal name, e.g. INT"`

	Files []string `json:"files,omitempty" hidden:"true"`
}

// callUndoable handles a call of bash_job if changes are recorded.
func (s *bashTool) callUndoable(ctx context.Context, args undoArguments) (*mcpkit.Result, error) {
	return s.callJob(ctx, jobArguments(args))
}

// callReview handles a call of bash_job if changes are reviewed.
func (s *bashTool) callReview(ctx context.Context, args reviewArguments) (*mcpkit.Result, error) {
	return s.callJob(ctx, jobArguments(args))
}

// callJob handles a call of bash_job. It returns MISSING_PARAMETER, INVALID_PARAMS or
// BAD_PATTERN for unusable arguments, and JOB_NOT_FOUND.
func (s *bashTool) callJob(ctx context.Context, args jobArguments) (*mcpkit.Result, error) {
	switch args.Action {
	case "list":
		return s.listJobs(ctx), nil
	case "diff", "apply", "discard":
		return s.callChanges(ctx, args)
	case "undo":
		return s.callUndo(ctx, args)
	}
	if args.JobID == "" {
		return nil, toolerr.New(toolerr.MissingParameter, "job_id is missing: {\"action\":\"list\"} shows the ids of the jobs")
	}
	j, err := s.jobs.find(args.JobID)
	if err != nil {
		return nil, err
	}
	var pattern *regexp.Regexp
	if args.WaitFor != "" {
		if pattern, err = regexp.Compile("(?m)" + args.WaitFor); err != nil {
			return nil, toolerr.New(toolerr.BadPattern, "wait_for is not a valid regular expression: %w", err)
		}
		if args.WaitMS == 0 {
			args.WaitMS = 30_000
		}
	}
	from := j.startOffset(args.Since)
	switch args.Action {
	case "write":
		err = j.writeInput(ctx, args.Input)
	case "signal":
		err = j.sendSignal(args.Input)
	case "kill":
		j.process.Stop()
		select {
		case <-j.process.Done():
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if args.Action != "kill" {
		w := waitCondition{from: from, limit: time.Duration(args.WaitMS) * time.Millisecond, pattern: pattern, reply: args.Action != "poll"}
		if err := j.wait(ctx, w); err != nil {
			return nil, err
		}
	}
	return j.result(ctx, from, pattern), nil
}

// listJobs returns the result of the action list: jobs, pending changes and
// undo records.
func (s *bashTool) listJobs(ctx context.Context) *mcpkit.Result {
	all := s.jobs.list()
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs\n", len(all))
	m := meta{}
	for _, j := range all {
		b.WriteString(j.String() + "\n")
		m.Jobs = append(m.Jobs, j.row())
	}
	b.WriteString(s.listChanges(ctx))
	b.WriteString(s.listUndoRecords(ctx))
	return &mcpkit.Result{Text: b.String(), Meta: m, Rows: m.Jobs}
}

// startOffset returns the byte offset at which an answer's output begins. since
// is as in the arguments; nil: after the output shown last.
func (j *job) startOffset(since *int64) int64 {
	size := j.output.Size()
	switch {
	case since == nil:
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.cursor
	case *since < 0:
		return max(0, size+*since)
	}
	return min(*since, size)
}

// result returns the job's state and its output from a byte offset on, and
// moves the cursor after that. pattern is wait_for's; nil: none.
func (j *job) result(ctx context.Context, from int64, pattern *regexp.Regexp) *mcpkit.Result {
	m := j.meta()
	over := !m.Running
	text, next, skipped := outputPage(j.output, from, jobPageChars, mcpkit.Budget(ctx)-noteBytes, over)
	m.Cursor = next
	j.mu.Lock()
	j.cursor = next
	j.mu.Unlock()
	m.Truncated = next < m.Bytes || skipped > 0
	foot := []string{j.stateText(), "job " + j.id, fmt.Sprintf("cursor %d", next)}
	if skipped > 0 {
		text = fmt.Sprintf("[… %d bytes were not kept …]\n", skipped) + text
	}
	if left := m.Bytes - next; left > 0 {
		foot = append(foot, fmt.Sprintf("%d more bytes", left))
	}
	if pattern != nil {
		search := outputMatcher{output: j.output, at: from}
		if m.Matched = search.search(pattern); !m.Matched {
			foot = append(foot, "no match for wait_for")
		}
	}
	if m.Running {
		if m.Prompt = promptLine(j.output); m.Prompt != "" {
			foot = append(foot, fmt.Sprintf("seems to wait for an answer (%q)", m.Prompt))
		} else if w := terminalWait(j.process, j.output); w.terminal {
			foot = append(foot, fmt.Sprintf("seems to wait for a terminal (%s), which it does not have", w.programText(j.args.Command)))
		}
	}
	if over {
		foot = append(foot, j.guardTexts()...)
		if words := j.layer.describe(j.fs); words != "" {
			foot = append(foot, words)
		}
		if words := j.tool.undos.unheldText(j.fs, m.Changes); words != "" {
			foot = append(foot, words)
		}
	}
	foot = append(foot, sandboxText(j.report.Level, j.tool.config.Network))
	return &mcpkit.Result{Text: joinLines(text, strings.Join(foot, " · ")+"\n"), Meta: m}
}
