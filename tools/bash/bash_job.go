package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxWait is less than the 60 s after which common clients time out.
const maxWait = 50 * time.Second

// endOfInput is the character of Ctrl-D: at the end of an input it closes
// standard input.
const endOfInput = "\x04"

// patternTail is the number of earlier bytes that are searched again for
// wait_for with new output, so that a match across two reads is found.
const patternTail = 4 << 10

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

// callUndoable is the handler of bash_job if changes are recorded.
func (s *shell) callUndoable(ctx context.Context, args undoArguments) (*mcpkit.Result, error) {
	return s.callJob(ctx, jobArguments(args))
}

// callReview is the handler of bash_job if changes are reviewed.
func (s *shell) callReview(ctx context.Context, args reviewArguments) (*mcpkit.Result, error) {
	return s.callJob(ctx, jobArguments(args))
}

// callJob is the handler of bash_job.
func (s *shell) callJob(ctx context.Context, args jobArguments) (*mcpkit.Result, error) {
	switch args.Action {
	case "list":
		return s.listJobs(ctx), nil
	case "diff", "apply", "discard":
		return s.callChanges(ctx, args)
	case "undo":
		return s.callUndo(ctx, args)
	}
	if args.JobID == "" {
		return nil, toolerr.New(toolerr.MissingParameter, "job_id is missing: name the job, as {\"action\":\"list\"} shows it")
	}
	j, err := s.jobs.find(args.JobID)
	if err != nil {
		return nil, err
	}
	var pattern *regexp.Regexp
	if args.WaitFor != "" {
		if pattern, err = regexp.Compile("(?m)" + args.WaitFor); err != nil {
			return nil, toolerr.New(toolerr.BadPattern, "wait_for is no regular expression: %w", err)
		}
		if args.WaitMS == 0 {
			args.WaitMS = 30_000
		}
	}
	from := j.from(args.Since)
	switch args.Action {
	case "write":
		err = j.write(ctx, args.Input)
	case "signal":
		err = j.signal(args.Input)
	case "kill":
		j.process.Kill()
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
		w := waiting{from: from, most: time.Duration(args.WaitMS) * time.Millisecond, pattern: pattern, reply: args.Action != "poll"}
		if err := j.wait(ctx, w); err != nil {
			return nil, err
		}
	}
	return j.answer(ctx, from, pattern), nil
}

func (s *shell) listJobs(ctx context.Context) *mcpkit.Result {
	all := s.jobs.list()
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs\n", len(all))
	m := meta{}
	for _, j := range all {
		b.WriteString(j.String() + "\n")
		m.Jobs = append(m.Jobs, j.row())
	}
	b.WriteString(s.listChanges(ctx))
	b.WriteString(s.listUndos(ctx))
	return &mcpkit.Result{Text: b.String(), Meta: m, Rows: m.Jobs}
}

// from returns the byte offset at which an answer's output begins.
func (j *job) from(since *int64) int64 {
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

// write sends input to the job. If the job does not read it within two seconds,
// write returns an error and the input stays pending.
func (j *job) write(ctx context.Context, input string) error {
	if input == "" {
		return toolerr.New(toolerr.MissingParameter, "input is missing: the text to write, with \\n for Enter")
	}
	if j.over() {
		return toolerr.New(toolerr.Conflict, "job %s has ended (%s): nothing can be written to it", j.id, j.state())
	}
	if !j.args.Background {
		return toolerr.New(toolerr.Conflict, "job %s was not started with run_in_background, so that its standard input is at its end: kill it and start it so, or give stdin", j.id)
	}
	select {
	case j.writing <- struct{}{}:
	default:
		return toolerr.New(toolerr.Conflict, "job %s has not read yet what was written to it before: this was not written", j.id)
	}
	done := make(chan error, 1)
	go func() { // ends with the job
		defer func() { <-j.writing }()
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
		return toolerr.New(toolerr.Conflict, "job %s does not read its input now; what was written waits for it", j.id)
	}
}

func (j *job) signal(name string) error {
	number, ok := parseSignal(name)
	if !ok {
		return toolerr.New(toolerr.InvalidParams, "input is to name the signal, as INT, TERM, HUP or USR1; %q is none", shorten(safe(name).text, 40))
	}
	if err := j.process.Signal(number); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return toolerr.New(toolerr.Conflict, "job %s has ended (%s): no signal can be sent to it", j.id, j.state())
		}
		return toolerr.New(toolerr.ExecutionError, "the signal could not be sent: %w", err)
	}
	return nil
}

// settled is the time without output after which a job's reply to an input
// counts as complete.
const settled = 150 * time.Millisecond

// waiting describes what wait waits for: a match of pattern, else a reply to
// the input, else the end of the job.
type waiting struct {
	from    int64
	most    time.Duration
	pattern *regexp.Regexp
	reply   bool
}

// wait returns when the awaited event has happened, when the job has ended or
// waits for input, or when w.most has passed.
func (j *job) wait(ctx context.Context, w waiting) error {
	timer := time.NewTimer(w.most)
	defer timer.Stop()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	quiet := quietness{output: j.output, process: j.process}
	search := matcher{output: j.output, at: w.from}
	var whole <-chan time.Time
	for {
		changed := j.output.Changed()
		switch {
		case w.pattern != nil:
			if search.found(w.pattern) {
				return nil
			}
		case w.reply && j.output.Size() > w.from:
			whole = time.After(settled)
		}
		select {
		case <-j.process.Done():
			return nil
		case <-timer.C:
			return nil
		case <-whole:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-look.C:
			if quiet.want().any() {
				return nil
			}
			j.progress(ctx)
		}
	}
}

// matcher searches new output for a pattern at each call.
type matcher struct {
	output *proc.Output
	at     int64 // offset up to which the output has been searched
	tail   []byte
	done   bool
}

func (s *matcher) found(pattern *regexp.Regexp) bool {
	buf := make([]byte, 64<<10)
	for !s.done {
		n, skipped, err := s.output.Read(s.at, buf)
		if err != nil || n == 0 {
			return false
		}
		s.at += skipped + int64(n)
		text := append(s.tail, buf[:n]...)
		s.done = pattern.Match(text)
		tail := text[max(0, len(text)-patternTail):]
		if at := bytes.IndexByte(tail, '\n'); len(tail) < len(text) && at >= 0 {
			tail = tail[at:] // otherwise ^ would match in the middle of a line
		}
		s.tail = append([]byte(nil), tail...)
	}
	return true
}

// answer returns the job's state and its output from a byte offset on.
func (j *job) answer(ctx context.Context, from int64, pattern *regexp.Regexp) *mcpkit.Result {
	m := j.meta()
	over := !m.Running
	text, next, skipped := page(j.output, from, proc.DefaultCharacters, mcpkit.Budget(ctx)-noteRoom, over)
	m.Cursor = next
	j.mu.Lock()
	j.cursor = next
	j.mu.Unlock()
	m.Truncated = next < m.Bytes || skipped > 0
	foot := []string{j.state(), "job " + j.id, fmt.Sprintf("cursor %d", next)}
	if skipped > 0 {
		text = fmt.Sprintf("[… %d bytes are not kept …]\n", skipped) + text
	}
	if left := m.Bytes - next; left > 0 {
		foot = append(foot, fmt.Sprintf("%d bytes more", left))
	}
	if pattern != nil {
		search := matcher{output: j.output, at: from}
		if m.Matched = search.found(pattern); !m.Matched {
			foot = append(foot, "wait_for not found")
		}
	}
	if m.Running {
		if m.Prompt = promptIn(j.output); m.Prompt != "" {
			foot = append(foot, fmt.Sprintf("seems to wait for an answer (%q)", m.Prompt))
		} else if w := terminalWant(j.process, j.output); w.terminal {
			foot = append(foot, fmt.Sprintf("seems to wait for a terminal (%s), which it does not have", w.name(j.args.Command)))
		}
	}
	if over {
		if words := j.layer.words(j.fs); words != "" {
			foot = append(foot, words)
		}
	}
	foot = append(foot, sandboxWords(j.report.Level, j.shell.config.Network))
	return &mcpkit.Result{Text: joinLines(text, strings.Join(foot, " · ")+"\n"), Meta: m}
}

// showJob returns the output of a command at the time it becomes a job.
func (s *shell) showJob(j *job, m *meta, budget int) string {
	size := j.output.Size()
	if size == 0 {
		return ""
	}
	j.mu.Lock()
	j.cursor, m.Cursor = size, size
	j.mu.Unlock()
	return s.show(j.fs, j.output, budget, m).text
}

// page returns the output from a byte offset on, made safe, within a number of
// characters and of bytes, and the offset of the next page. Consecutive pages
// contain every byte exactly once. An incomplete character at the end is left
// to the next page, unless the output is over. skipped counts the bytes before
// the page that were not kept.
func page(o *proc.Output, from int64, characters, budget int, over bool) (text string, next, skipped int64) {
	buf := make([]byte, characters*utf8.UTFMax)
	got := 0
	at := from
	for got < len(buf) {
		n, gap, err := o.Read(at, buf[got:])
		if gap > 0 && got > 0 {
			break // the gap belongs to the next page
		}
		if err != nil || n == 0 && gap == 0 {
			break
		}
		skipped += gap
		at += gap + int64(n)
		got += n
		if n == 0 {
			break
		}
	}
	raw := buf[:got]
	if !over || at < o.Size() {
		raw = raw[:len(raw)-cutRune(raw)]
	}
	var b strings.Builder
	used := 0
	for count := 0; used < len(raw) && count < characters; count++ {
		r, size := utf8.DecodeRune(raw[used:])
		piece := string(raw[used : used+size])
		if r == utf8.RuneError && size == 1 {
			piece = fmt.Sprintf(`\x%02x`, raw[used])
		} else if r == '\r' {
			if used+1 == len(raw) && !over {
				break // its line feed may still arrive
			}
			if used+1 < len(raw) && raw[used+1] == '\n' {
				used++
				continue
			}
			piece = `\r`
		} else if risky(r) {
			piece = safe(piece).text
		}
		if b.Len()+len(piece) > budget && used > 0 {
			break
		}
		b.WriteString(piece)
		used += size
	}
	return b.String(), from + skipped + int64(used), skipped
}

// cutRune returns the number of bytes at the end of p that begin an incomplete
// character.
func cutRune(p []byte) int {
	for n := 1; n <= min(len(p), utf8.UTFMax-1); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if c >= 0xc0 && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
