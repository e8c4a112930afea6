//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A job starts at once and can be polled by cursor, awaited, written to,
// signalled and killed.
func TestJob(t *testing.T) {
	t.Parallel()
	s := newPlace(t).serve()
	r := s.bash(`trap 'echo got usr1' USR1; echo ready; while read -r line; do echo "line $line"; [ "$line" = stop ] && exit 7; done; sleep 1000`, "run_in_background", true)
	require.False(t, r.IsError, r.Text)
	require.NotContains(t, r.Meta, "exit_code")
	id := text(t, r, "job_id")
	require.Contains(t, r.Text, "as job "+id)
	all := printed(r)

	poll := func(more ...any) mcpkittest.Result {
		t.Helper()
		r := s.job(append([]any{"action", "poll", "job_id", id}, more...)...)
		require.False(t, r.IsError, r.Text)
		return r
	}
	if !strings.Contains(all, "ready") {
		r = poll("wait_for", "ready", "wait_ms", 30_000)
		all = printed(r)
	}
	require.Contains(t, all, "ready\n")
	require.Equal(t, "ready\n", printed(poll("since", 0)))
	require.Empty(t, printed(poll()), "nothing new since then")

	r = s.job("action", "write", "job_id", id, "input", "one\n", "wait_ms", 30_000)
	require.False(t, r.IsError, r.Text)
	require.Equal(t, "line one\n", printed(r))
	cursor := number(t, r, "cursor")
	r = s.job("action", "signal", "job_id", id, "input", "USR1")
	require.False(t, r.IsError, r.Text)
	r = s.job("action", "write", "job_id", id, "input", "two\n", "wait_for", "^line two$", "wait_ms", 30_000)
	require.Equal(t, true, r.Meta["matched"], r.Text)
	within(t, "the signal is told", func() bool {
		return printed(poll("since", cursor)) == "got usr1\nline two\n" || printed(poll("since", cursor)) == "line two\ngot usr1\n"
	})
	size := number(t, poll(), "output_bytes")
	require.Equal(t, printed(poll("since", size-9)), printed(poll("since", -9)))
	require.Len(t, printed(poll("since", -9)), 9)

	r = s.job("action", "list")
	require.Contains(t, r.Text, id)
	require.Len(t, r.Meta["jobs"], 1)

	s.job("action", "write", "job_id", id, "input", "stop\n")
	r = poll("since", 0, "wait_ms", 30_000)
	require.EqualValues(t, 7, number(t, r, "exit_code"), "a poll waits for the end")
	require.Contains(t, poll("wait_for", "never").Text, "no match for wait_for")
	r = s.job("action", "write", "job_id", id, "input", "x")
	require.Equal(t, "CONFLICT", r.Code, r.Text)
	r = s.job("action", "signal", "job_id", id, "input", "TERM")
	require.Equal(t, "CONFLICT", r.Code, r.Text)

	id = text(t, s.bash("cat; echo at the end", "run_in_background", true), "job_id")
	r = s.job("action", "write", "job_id", id, "input", "last words\x04", "wait_for", "end", "wait_ms", 30_000)
	require.Contains(t, r.Text, "last wordsat the end\n")
	id = text(t, s.bash("echo $$; sleep 1000", "run_in_background", true), "job_id")
	r = s.job("action", "kill", "job_id", id)
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "killed")
	require.Equal(t, "killed", text(t, r, "ending"))
}

// A wrong call gets an error that says what to do.
func TestJobRefusals(t *testing.T) {
	t.Parallel()
	s := newPlace(t).serve()
	for _, c := range []struct {
		args map[string]any
		code string
		says string
	}{
		{arg("action", "poll"), "MISSING_PARAMETER", "job_id"},
		{arg("action", "poll", "job_id", "jnone"), "JOB_NOT_FOUND", "end with the server"},
		{arg("action", "stop"), "INVALID_PARAMS", "action"},
		{arg(), "MISSING_PARAMETER", "action"},
		{arg("action", "list", "wait", 1), "INVALID_PARAMS", "wait"},
	} {
		r := s.Call("bash_job", c.args)
		require.Equal(t, c.code, r.Code, r.Text)
		require.Contains(t, r.Text, c.says)
	}
	id := text(t, s.bash("sleep 1000", "run_in_background", true), "job_id")
	for _, c := range []struct {
		args map[string]any
		code string
		says string
	}{
		{arg("action", "poll", "job_id", id, "wait_for", "("), "BAD_PATTERN", "wait_for"},
		{arg("action", "poll", "job_id", "jnone"), "JOB_NOT_FOUND", id},
		{arg("action", "write", "job_id", id), "MISSING_PARAMETER", "input"},
		{arg("action", "signal", "job_id", id, "input", "NOPE"), "INVALID_PARAMS", "INT, TERM"},
		{arg("action", "poll", "job_id", id, "wait_ms", 60_000), "INVALID_PARAMS", "50000"},
	} {
		r := s.Call("bash_job", c.args)
		require.Equal(t, c.code, r.Code, r.Text)
		require.Contains(t, r.Text, c.says)
	}
}

// A command that outlasts the client's patience becomes a job, with the output
// so far, and its timeout still applies.
func TestAutoBackground(t *testing.T) {
	t.Parallel()
	s := newPlace(t).serve()
	var r mcpkittest.Result
	wait := 300 * time.Millisecond
	within(t, "it has begun before it becomes a job", func() bool { // on a busy machine it may start late
		r = s.bash("echo begun; cd /; sleep 1000", "auto_background_after", wait.Milliseconds(), "timeout", 5*wait.Milliseconds())
		wait *= 2
		return strings.Contains(r.Text, "begun\n")
	})
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "will be killed at "+formatDuration(5*wait/2))
	id := text(t, r, "job_id")
	require.Equal(t, "CONFLICT", s.job("action", "write", "job_id", id, "input", "x").Code, "its input is at its end")
	r = s.job("action", "poll", "job_id", id, "wait_for", "never", "wait_ms", 30_000)
	require.Equal(t, "timeout", text(t, r, "ending"), r.Text)
	require.Contains(t, r.Text, "ended at its timeout")
	require.NotContains(t, s.bash("pwd").Text, "gone", "a job changes no session")
}

// At most 32 jobs are kept, and an ended job makes room.
func TestJobsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s, root := p.serve(), p.root
	var calls, ids []string
	for range maxJobs {
		calls = append(calls, s.Go("tools/call", mcpkittest.CallParams("bash", arg("command", "exec sleep 1000", "run_in_background", true))))
	}
	for _, call := range calls {
		r, err := mcpkittest.ParseResult(s.Answer(call).Result)
		require.NoError(t, err)
		require.False(t, r.IsError, r.Text)
		ids = append(ids, text(t, r, "job_id"))
	}
	r := s.bash("echo never", "run_in_background", true)
	require.Equal(t, "LIMIT_REACHED", r.Code, r.Text)
	require.Contains(t, r.Text, "kill")
	// Without room for a job, the call keeps waiting for its command.
	r = s.bash("sleep 0.5; echo done", "auto_background_after", 100)
	require.Contains(t, r.Text, "done\nexit 0")
	require.False(t, s.job("action", "kill", "job_id", ids[3]).IsError)
	require.False(t, s.bash("sleep 1000", "run_in_background", true).IsError)
	require.Equal(t, "JOB_NOT_FOUND", s.job("action", "poll", "job_id", ids[3]).Code)
	// It notices when there is room again.
	waits := s.Go("tools/call", mcpkittest.CallParams("bash", arg("command", "touch begun; exec sleep 1000", "auto_background_after", 1)))
	within(t, "it runs", func() bool { _, err := os.Stat(filepath.Join(root, "begun")); return err == nil })
	require.False(t, s.job("action", "kill", "job_id", ids[4]).IsError)
	last, err := mcpkittest.ParseResult(s.Answer(waits).Result)
	require.NoError(t, err)
	require.NotEmpty(t, text(t, last, "job_id"))
}

// Input that a job does not read is kept once, not once a call.
func TestInputsDoNotPileUp(t *testing.T) {
	t.Parallel()
	s := newPlace(t).serve()
	id := text(t, s.bash("sleep 1000", "run_in_background", true), "job_id")
	much := strings.Repeat("x", 2<<20)
	r := s.job("action", "write", "job_id", id, "input", much)
	require.Equal(t, "CONFLICT", r.Code)
	require.Contains(t, r.Text, "is kept until it does")
	r = s.job("action", "write", "job_id", id, "input", much)
	require.Equal(t, "CONFLICT", r.Code)
	require.Contains(t, r.Text, "was not written")
}

// A command that asks for a password is answered at once: it becomes a job, and
// the answer says whether it can be given input.
func TestPrompt(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	s := newPlace(t).serve()
	r := s.bash("printf 'Password: '; sleep 1000")
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, `seems to wait for an answer ("Password: ")`)
	require.Contains(t, r.Text, "run_in_background")
	require.NotEmpty(t, text(t, r, "job_id"))

	r = s.bash("printf 'Password: '; read -r word; echo; echo got $word", "run_in_background", true)
	id := text(t, r, "job_id")
	r = s.job("action", "poll", "job_id", id, "wait_for", "never", "wait_ms", 40_000)
	require.Equal(t, "Password:", strings.TrimSpace(text(t, r, "prompt")), r.Text)
	r = s.job("action", "write", "job_id", id, "input", "sesame\n", "wait_for", "got", "wait_ms", 30_000)
	require.Contains(t, r.Text, "got sesame")
}

// Calls of bash_job do not wait behind any number of calls of bash.
func TestJobsPassCommands(t *testing.T) {
	s := newPlace(t).serve("--sandbox", "off")
	id := text(t, s.bash("sleep 1000", "run_in_background", true), "job_id")
	var calls []string
	for range maxConcurrent + 8 {
		calls = append(calls, s.Go("tools/call", mcpkittest.CallParams("bash", arg("command", "read -r x < gate || sleep 0.2"))))
	}
	require.Contains(t, s.job("action", "kill", "job_id", id).Text, "killed")
	for _, call := range calls {
		require.Nil(t, s.Answer(call).Error)
	}
}

// The end of the input ends the jobs, including those that ignore TERM; so do
// signals that end a server.
func TestJobsEndWithTheServer(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	type one struct {
		how, mark string
		server
	}
	var all []one
	for i, level := range []string{"", "off"} {
		for j, how := range []string{"end of input", "SIGTERM", "SIGKILL"} {
			var flags []string
			if level != "" {
				flags = []string{"--sandbox", level}
			}
			c := one{how, newMark(100 + 10*i + j), newPlace(t).serve(flags...)}
			command := "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep MARK; sleep MARK' &) ; (sleep MARK &); echo up; sleep MARK"
			r := c.bash(strings.ReplaceAll(command, "MARK", c.mark), "run_in_background", true)
			require.False(t, r.IsError, r.Text)
			all = append(all, c)
		}
	}
	for _, c := range all {
		within(t, "they run", func() bool { return len(processes(t, c.mark)) >= 4 })
		switch c.how {
		case "end of input":
			c.CloseInput()
		case "SIGTERM":
			require.NoError(t, syscall.Kill(c.PID(), syscall.SIGTERM))
		case "SIGKILL":
			require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
		}
	}
	for _, c := range all {
		if code := c.Wait(); c.how != "SIGKILL" {
			require.Zero(t, code, c.how)
		}
		within(t, "all are gone after "+c.how, func() bool { return len(processes(t, c.mark)) == 0 })
	}
}
