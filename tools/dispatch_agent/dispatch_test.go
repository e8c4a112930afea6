package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// TestHandBack: an agent that runs longer than a client waits is handed back,
// shows its progress, can be waited for, and keeps its report.
func TestHandBack(t *testing.T) {
	p := newPlace(t)
	c := p.serve("--hand-back", "50ms")
	r := dispatch(c, "prompt", lines("turn 100 7", "call grep {\"pattern\":\"x\"}", "wait "+p.file("go"), "report done"))
	require.False(t, r.IsError, r.Text)
	id := r.Meta["agent_id"].(string)
	require.Contains(t, r.Text, "agent "+id+" is still running after ")
	require.Contains(t, r.Text, `To wait for its report: dispatch_agent {"agent_id":"`+id+`"}`)
	require.Equal(t, true, r.Meta["running"])
	within(t, "it says what it does", func() bool {
		r = dispatch(c, "agent_id", id, "wait_ms", 0)
		return strings.Contains(r.Text, `turn 1 of 25 · 100 in / 7 out · `) && strings.Contains(r.Text, `now: grep {"pattern":"x"}`) ||
			strings.Contains(r.Text, `grep×1 · now: grep`)
	})
	r = dispatch(c, "agent_id", id, "prompt", "another thing", "wait_ms", 0)
	require.Contains(t, r.Text, "note: the prompt was not sent")
	require.Contains(t, r.Text, "still running")

	// Two calls wait at the same time.
	first := c.Go("tools/call", mcpkittest.CallParams("dispatch_agent", arg("agent_id", id, "wait_ms", 60000)))
	second := c.Go("tools/call", mcpkittest.CallParams("dispatch_agent", arg("agent_id", id, "wait_ms", 60000)))
	p.write("go", "")
	for _, call := range []string{first, second} {
		r, err := mcpkittest.ParseResult(c.Answer(call).Result)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(r.Text, "done\n\nagent "+id+" · goal reached · 1 turn · "), r.Text)
	}
	require.Contains(t, dispatch(c, "agent_id", id).Text, "done\n\n", "it may be read again")

	// The agent continues its conversation. With wait_ms, because a turn
	// may take longer than the 50 ms after which the tool answers.
	goOn := func(prompt string) mcpkittest.Result {
		return dispatch(c, "agent_id", id, "prompt", prompt, "wait_ms", 60000)
	}
	r = goOn(lines("turn 10 1", "told"))
	require.Contains(t, r.Text, "report done\n\nagent "+id+" · goal reached · 2 turns · 110 in / 8 out · ")
	require.Equal(t, id, r.Meta["agent_id"])
	r = goOn("told")
	require.Contains(t, r.Text, "report done | turn 10 1\ntold\n\n")
	goOn("forget")
	r = goOn("told")
	require.Equal(t, "CONFLICT", r.Code)
	require.Contains(t, r.Text, "its conversation was not saved")
}

func TestProgress(t *testing.T) {
	p := newPlace(t)
	c := p.serve()
	params := mcpkittest.CallParams("dispatch_agent", arg("prompt", lines("turn 1 1", "call ls {}", "wait "+p.file("go"))))
	params["_meta"] = map[string]any{"progressToken": "t"}
	id := c.Go("tools/call", params)
	within(t, "the agent says what it does", func() bool {
		for _, n := range c.Notifications("notifications/progress") {
			if strings.Contains(string(n.Params), "turn 1 of 25") && strings.Contains(string(n.Params), "now: ls") {
				return true
			}
		}
		return false
	})
	p.write("go", "")
	require.Nil(t, c.Answer(id).Error)
}

// TestCancel: cancelling a call stops the agent and its processes; the texts
// found so far are returned.
func TestCancel(t *testing.T) {
	p := newPlace(t)
	c := p.serve()
	id := c.Go("tools/call", mcpkittest.CallParams("dispatch_agent", arg("prompt", lines("pid "+p.file("pid"), "turn 5 5 one half", "hang"))))
	pid := p.pid("pid")
	c.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	within(t, "the agent is gone", func() bool { return !mcpkittest.IsRunning(pid) })

	// A call that waits for a handed-back agent does the same.
	r := dispatch(c, "prompt", lines("pid "+p.file("other"), "turn 5 5 one half", "hang"), "wait_ms", 0)
	agent := r.Meta["agent_id"].(string)
	pid = p.pid("other")
	params := mcpkittest.CallParams("dispatch_agent", arg("agent_id", agent))
	params["_meta"] = map[string]any{"progressToken": "t"}
	id = c.Go("tools/call", params)
	within(t, "it waits", func() bool { return len(c.Notifications("notifications/progress")) > 0 })
	c.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	within(t, "the agent is gone", func() bool { return !mcpkittest.IsRunning(pid) })
	r = dispatch(c, "agent_id", agent)
	require.Equal(t, "CANCELLED", r.Code)
	require.Contains(t, r.Text, "half of it")
	require.Contains(t, r.Text, "agent "+agent+" · cancelled · 1 turn · 5 in / 5 out")
	require.Empty(t, c.Untaken())
}

// Each of two calls that wait for an agent can be cancelled; cancelling the
// last one stops the agent.
func TestOneOfTwoWhoWaitIsCancelled(t *testing.T) {
	p := newPlace(t)
	c := p.serve()
	r := dispatch(c, "prompt", lines("pid "+p.file("pid"), "turn 5 5 half", "wait "+p.file("go"), "report done"), "wait_ms", 0)
	agent := r.Meta["agent_id"].(string)
	pid := p.pid("pid")
	wait := func() string {
		t.Helper()
		params := mcpkittest.CallParams("dispatch_agent", arg("agent_id", agent, "wait_ms", 60000))
		before := len(c.Notifications("notifications/progress"))
		params["_meta"] = map[string]any{"progressToken": fmt.Sprint("t", before)}
		id := c.Go("tools/call", params)
		within(t, "it waits", func() bool { return len(c.Notifications("notifications/progress")) > before })
		return id
	}
	cancel := func(id string) {
		c.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	}
	first, second := wait(), wait()
	cancel(first)
	r = dispatch(c, "agent_id", agent, "wait_ms", 200)
	require.Equal(t, true, r.Meta["running"], r.Text)
	require.True(t, mcpkittest.IsRunning(pid))
	p.write("go", "")
	r, err := mcpkittest.ParseResult(c.Answer(second).Result)
	require.NoError(t, err)
	require.Contains(t, r.Text, "done\n\nagent "+agent+" · goal reached")

	r = dispatch(c, "prompt", lines("pid "+p.file("other"), "hang"), "wait_ms", 0)
	agent = r.Meta["agent_id"].(string)
	pid = p.pid("other")
	first, second = wait(), wait()
	cancel(second)
	cancel(first)
	within(t, "the agent is gone", func() bool { return !mcpkittest.IsRunning(pid) })
}

// The end of the server's input stops agents in the background.
func TestTheEndOfTheServer(t *testing.T) {
	p := newPlace(t)
	c := p.serve()
	r := dispatch(c, "prompt", lines("pid "+p.file("pid"), "hang"), "wait_ms", 0)
	require.Equal(t, true, r.Meta["running"])
	pid := p.pid("pid")
	require.Zero(t, c.Close())
	require.False(t, mcpkittest.IsRunning(pid))
}

// TestWhatIsMissing: listing the tool needs no other binary; a call names the
// missing binaries and their directory.
func TestWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		there, flags []string
		agent, want  string
	}{
		{nil, nil, "explore", "mcp-host, mcp-ls, mcp-glob, mcp-grep, mcp-view are missing"},
		{[]string{"mcp-host", "mcp-ls", "mcp-glob", "mcp-view"}, nil, "explore", "mcp-grep is missing"},
		{[]string{"mcp-host", "mcp-ls", "mcp-glob", "mcp-grep", "mcp-view"}, []string{"--tools", "all"}, "general", "mcp-edit, mcp-replace, mcp-bash are missing"},
	} {
		p := newPlace(t)
		p.bin = beside(t, c.there...)
		s := p.serve(c.flags...)
		require.Nil(t, s.Request("tools/list", nil).Error)
		r := dispatch(s, "prompt", "x", "agent", c.agent)
		require.Equal(t, "NOT_FOUND", r.Code)
		require.Contains(t, strings.ReplaceAll(r.Text, ".exe", ""), c.want)
		require.Contains(t, r.Text, "missing in the directory of mcp-dispatch_agent, "+p.bin[:strings.LastIndexAny(p.bin, `/\`)])
	}
}

// TestCeilings: an agent may use only tools that the server, its kind and the
// call all allow.
func TestCeilings(t *testing.T) {
	for _, c := range []struct {
		flag, kind string
		tools      []string
		want       string
	}{
		{"readonly", "explore", nil, "ls glob grep view"},
		{"readonly", "general", nil, "ls glob grep view"},
		{"edit", "general", nil, "ls glob grep view edit replace"},
		{"edit", "explore", nil, "ls glob grep view edit replace"},
		{"all", "general", nil, "ls glob grep view edit replace bash bash_job dispatch_agent"},
		{"all", "general", []string{"bash", "ls"}, "bash ls"},
		{"all", "general", []string{}, ""},
		{"grep,view", "explore", nil, "grep view"},
		{"bash*", "general", nil, "bash bash_job"},
		{"all", "mine", nil, "grep bash"},
		{"edit", "mine", nil, "grep"},
	} {
		p := newPlace(t)
		p.write("toolroom/agents/mine.md", "---\ndescription: mine\ntools: Grep, Bash, WebFetch\nmodel: big\n---\n\nDo it my way.\n")
		pairs := []any{"prompt", "task", "agent", c.kind}
		if c.tools != nil {
			pairs = append(pairs, "tools", c.tools)
		}
		got := given(t, dispatch(p.serve("--tools", c.flag), pairs...))
		require.Equal(t, c.want, strings.Join(got.Tools, " "), c)
		require.Equal(t, c.kind == "mine", strings.HasPrefix(got.System, "Do it my way.\n") && got.Model == "big")
		require.Equal(t, c.kind == "mine", strings.Contains(got.System, "Your last message"))
		require.Equal(t, c.kind != "mine", got.Agent == c.kind)
	}
}

func TestKindsOfAgents(t *testing.T) {
	p := newPlace(t)
	p.write("toolroom/agents/lister.md", "Only list.\n")
	p.write("toolroom/agents/explore.md", "---\nname: explore\ndescription: \"Looks my way\"\ntools:\n  - view\ncolor: red\nhooks:\n  - one: 1\n---\nLook my way.")
	p.write("toolroom/agents/torn.md", "---\ndescription: no end\n")
	p.write("toolroom/agents/void.md", "---\ndescription: no words\n---\n")
	p.write("toolroom/agents/odd.md", "---\ntools: a b\n---\nx\n")
	c := p.serve()
	require.True(t, strings.HasPrefix(given(t, dispatch(c, "prompt", "task", "agent", "lister")).System, "Only list.\n"))
	got := given(t, dispatch(c, "prompt", "task"))
	require.Equal(t, toolSet{"view"}, got.Tools)
	require.True(t, strings.HasPrefix(got.System, "Look my way."), got.System)
	r := dispatch(c, "prompt", "kind", "agent", "none")
	require.Equal(t, "INVALID_PARAMS", r.Code)
	require.Contains(t, r.Text, `no kind of agent "none"; from files: explore (Looks my way), lister`)
	for kind, want := range map[string]string{"torn": "the front matter has no end", "void": "no instructions after the front matter", "odd": `"a b" is not a tool name`} {
		r := dispatch(c, "prompt", "x", "agent", kind)
		require.Equal(t, "INVALID_INPUT", r.Code, r.Text)
		require.Contains(t, r.Text, want)
		require.Contains(t, r.Text, kind+".md")
	}
}

// TestThreeDeep: an agent can dispatch agents, which cannot dispatch more; and
// no agent gets more than the agent that dispatches it, whatever it requests.
func TestThreeDeep(t *testing.T) {
	p := newPlace(t)
	nested := func(prompt string, more ...any) string {
		args, err := json.Marshal(arg(append([]any{"prompt", prompt, "agent", "general"}, more...)...))
		require.NoError(t, err)
		return "dispatch " + string(args)
	}
	third := nested("report too deep")
	c := p.serve("--tools", "grep,dispatch_agent")
	r := dispatch(c, "prompt", nested(third), "agent", "general")
	require.Equal(t, 2, strings.Count(r.Text, "goal reached"), r.Text)
	require.Contains(t, r.Text, "LIMIT_REACHED")
	require.Contains(t, r.Text, "nested agents cannot dispatch agents")
	require.NotContains(t, r.Text, "too deep")

	// The nested server's flags and arguments raise no limit.
	r = dispatch(c, "prompt", nested("task", "max_turns", 400, "max_tokens", 100000, "timeout", 3600), "agent", "general", "max_turns", 7, "max_tokens", 1000, "timeout", 100)
	_, inner, _ := strings.Cut(r.Text, `{\"prompt\":\"task\"`)
	if inner == "" {
		_, inner, _ = strings.Cut(r.Text, `"prompt`)
	}
	require.Contains(t, strings.ReplaceAll(inner, `\`, ""), `"tools":["grep","dispatch_agent"],"except":["dispatch_agent"],"max_turns":7,"max_tokens":1000,"timeout_ms":7`, r.Text)
	r = dispatch(c, "prompt", nested("x", "tools", []string{"bash"}), "agent", "general")
	require.Contains(t, r.Text, "bash is not allowed for this agent; allowed: grep, dispatch_agent")

	// An agent whose ceiling lacks dispatch_agent cannot dispatch.
	r = dispatch(p.serve(), "prompt", nested("task"), "agent", "general")
	require.Contains(t, strings.ReplaceAll(r.Text, `\`, ""), `"tools":["ls","glob","grep","view"]`)
}

// TestAGrantIsSealed: a grant is rejected if it was signed with another state
// directory's key, was changed, or if the key is missing.
func TestAGrantIsSealed(t *testing.T) {
	p := newPlace(t)
	key, err := signingKey(p.state)
	require.NoError(t, err)
	again, err := signingKey(p.state)
	require.NoError(t, err)
	require.Equal(t, key, again)
	sealed, err := grant{Depth: 1, Tools: toolSet{"ls"}, Tokens: 5}.sign(key)
	require.NoError(t, err)
	g, err := verifyGrant(sealed, key)
	require.NoError(t, err)
	require.Equal(t, grant{Depth: 1, Tools: toolSet{"ls"}, Tokens: 5}, g)
	bare, err := grant{Depth: 1, Tools: toolSet{}}.sign(key)
	require.NoError(t, err)
	g, err = verifyGrant(bare, key)
	require.NoError(t, err)
	require.NotNil(t, g.Tools, "no tool is not every tool")
	other, err := signingKey(t.TempDir())
	require.NoError(t, err)
	none, err := grant{}.sign(key)
	require.NoError(t, err)
	for _, bad := range []string{"", ".", "x", sealed + "x", "e30" + sealed[strings.IndexByte(sealed, '.'):], sealed[:strings.IndexByte(sealed, '.')] + ".", none} {
		_, err = verifyGrant(bad, key)
		require.ErrorIs(t, err, errSignature, bad)
	}
	_, err = verifyGrant(sealed, other)
	require.ErrorIs(t, err, errSignature)

	serve := func(state []string, value string) mcpkittest.Result {
		c := mcpkittest.StartWith(t, p.bin, mcpkittest.Options{
			Args: append([]string{"--root", p.root}, state...), Dir: p.root,
			Env: []string{"HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), grantVariable + "=" + value},
		})
		return dispatch(c, "prompt", "task", "agent", "general")
	}
	require.Equal(t, toolSet{"ls"}, given(t, serve([]string{"--state", p.state}, sealed)).Tools)
	for _, state := range [][]string{{"--state", p.state}, {"--state", t.TempDir()}, {"--no-state"}} {
		r := serve(state, sealed[:len(sealed)-4]+"AAAA")
		require.Equal(t, "PERMISSION_DENIED", r.Code, r.Text)
	}
}

// TestNoState: without a state directory, the server uses a temporary one while
// it runs.
func TestNoState(t *testing.T) {
	p := newPlace(t)
	temp := t.TempDir()
	c := mcpkittest.StartWith(t, p.bin, mcpkittest.Options{
		Args: []string{"--root", p.root, "--no-state", "--tools", "dispatch_agent"}, Dir: p.root,
		Env: []string{"HOME=" + p.dir, "TMPDIR=" + temp, "TEMP=" + temp, "TMP=" + temp, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")},
	})
	r := dispatch(c, "prompt", `dispatch {"prompt":"report inner"}`, "agent", "general")
	require.Contains(t, r.Text, "inner")
	c.Close()
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, p.file(".local"))
}

// TestALongReport: a report that is too long for a result is written to a file.
func TestALongReport(t *testing.T) {
	p := newPlace(t)
	r := dispatch(p.serve("--max-tokens", "1000"), "prompt", "long 64000")
	require.LessOrEqual(t, len(r.Text), 4000)
	require.Contains(t, r.Text, "of 63999 bytes; the whole report is in ")
	require.Contains(t, r.Text, "\nagent a")
	text, err := os.ReadFile(r.Meta["file"].(string))
	require.NoError(t, err)
	require.Len(t, text, 63999)
}

// TestAgentsTakeTurns: agents beyond the limit wait until others end, and their
// progress says so.
func TestAgentsTakeTurns(t *testing.T) {
	p := newPlace(t)
	c := p.serve("--max-agents", "2")
	var ids []string
	for i := range 5 {
		r := dispatch(c, "prompt", lines(fmt.Sprintf("pid %s%d", p.file("pid"), i), "wait "+p.file("go"), "report done"), "wait_ms", 0)
		ids = append(ids, r.Meta["agent_id"].(string))
		if i < 2 { // these two get their permits before the others ask
			p.pid(fmt.Sprint("pid", i))
		}
	}
	for _, id := range ids[2:] {
		require.Contains(t, dispatch(c, "agent_id", id, "wait_ms", 0).Text, "waiting for another agent to end")
	}
	require.NoFileExists(t, p.file("pid2"))
	p.write("go", "")
	for _, id := range ids {
		require.Contains(t, dispatch(c, "agent_id", id).Text, "done\n\nagent "+id)
	}
}

// TestALoopWaitsForTheEnd: a call made by a model's loop returns with the
// report, so that the model need not repeat the call to wait.
func TestALoopWaitsForTheEnd(t *testing.T) {
	p := newPlace(t)
	c := p.serve("--hand-back", "1ms")
	params := mcpkittest.CallParams("dispatch_agent", arg("prompt", lines("turn 1 1", "wait "+p.file("go"), "report done")))
	params["_meta"] = map[string]any{"progressToken": "t", "io.github.toolroom-mcp/agent": map[string]any{"left": map[string]any{}}}
	id := c.Go("tools/call", params)
	within(t, "it is at work", func() bool {
		for _, n := range c.Notifications("notifications/progress") {
			if strings.Contains(string(n.Params), "turn 1 of 25") {
				return true
			}
		}
		return false
	})
	p.write("go", "")
	r, err := mcpkittest.ParseResult(c.Answer(id).Result)
	require.NoError(t, err)
	require.Contains(t, r.Text, "done\n\nagent ")
}

// TestAnAgentGoesOnAsWhatItWas: a continued agent keeps its kind, and has no
// more tools than before.
func TestAnAgentGoesOnAsWhatItWas(t *testing.T) {
	p := newPlace(t)
	c := p.serve("--tools", "all", "--grace", "0s")
	r := dispatch(c, "prompt", "report x", "agent", "general", "model", "big", "tools", []string{"bash", "ls"})
	id := r.Meta["agent_id"]
	got := given(t, dispatch(c, "agent_id", id, "prompt", "task"))
	require.Equal(t, "general big ls bash", got.Agent+" "+got.Model+" "+strings.Join(got.Tools, " "))
	require.Equal(t, int64(1), got.GraceMS, "mcp-host must not choose it")
	got = given(t, dispatch(c, "agent_id", id, "prompt", "task", "agent", "explore"))
	require.Equal(t, "explore", got.Agent)
}

// TestEnvironmentsAreApart: agents started at the same time have different
// grants.
func TestEnvironmentsAreApart(t *testing.T) {
	t.Setenv(grantVariable, "x")
	d, err := newDispatcher(sandbox.Config{}, state.Config{}, DefaultConfig())
	require.NoError(t, err)
	one, other := append(d.environ, "one"), append(d.environ, "other")
	require.Equal(t, "one other", one[len(one)-1]+" "+other[len(other)-1])
	require.NotContains(t, d.environ, grantVariable+"=x")
}

// A call of an agent that has ended meanwhile is refused. It does not get the
// limits of a client.
func TestACallOfAnAgentThatHasEnded(t *testing.T) {
	p := newPlace(t)
	c := p.serve("--tools", "all")
	for within, code := range map[string]string{"": "", "gone": "CANCELLED"} {
		params := mcpkittest.CallParams("dispatch_agent", arg("prompt", "report done"))
		params["_meta"] = map[string]any{"io.github.toolroom-mcp/host": map[string]any{
			"socket": filepath.Join(p.state, "hosts", "1-a.sock"), "token": "t", "lease": "l", "depth": len(within) / 4, "within": within,
		}}
		r, err := mcpkittest.ParseResult(c.Answer(c.Go("tools/call", params)).Result)
		require.NoError(t, err)
		require.Equal(t, code, r.Code, r.Text)
		if within == "gone" { // whatever else the client sends
			text, err := json.Marshal(params)
			require.NoError(t, err)
			more := strings.Replace(string(text), `"within":"gone"}`, `"within":"gone"},"IO.github.toolroom-mcp/host":{"within":""}`, 1)
			r, err = mcpkittest.ParseResult(c.Answer(c.Go("tools/call", json.RawMessage(more))).Result)
			require.NoError(t, err)
			require.Equal(t, code, r.Code, r.Text)
		}
	}
}
