package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// script is a scripted model that searches for words, dispatches agents, and
// waits.
const script = `
answers:
  - when: {message: "^find (\\S+)", turn: 0}
    text: I search.
    calls: [{name: grep, args: {pattern: "{{1}}", path: .}}]
  - when: {message: "^write (\\S+)", turn: 0}
    calls: [{name: replace, args: {file_path: "{{1}}", content: x}}, {name: bash, args: {command: "touch {{1}}"}}]
  - when: {message: "^twice (.*)", turn: 0}
    calls:
      - {name: dispatch_agent, args: {prompt: "{{1}} one", agent: general}}
      - {name: dispatch_agent, args: {prompt: "{{1}} two", agent: general}}
  - when: {message: "^through (.*)", turn: 0}
    calls: [{name: dispatch_agent, args: {prompt: "{{1}}", agent: general}}]
  - when: {message: "^slow (\\S+)", turn: 0}
    delay: 60s
  - when: {turn: 0}
    text: "I was asked: {{message}}"
  - when: {result: "(?s).*"}
    text: "I got: {{result}}"
`

// newRealPlace returns a directory with all binaries of a release, a root and a
// model.
func newRealPlace(t testing.TB, configuration string) *place {
	t.Helper()
	mcpkittest.SkipUnderRace(t)
	p := newPlace(t)
	p.bin = beside(t)
	for _, pkg := range []string{"./host", "./tools/ls", "./tools/glob", "./tools/grep", "./tools/view", "./tools/replace"} {
		bin := mcpkittest.Build(t, pkg)
		copyFile(t, bin, filepath.Join(filepath.Dir(p.bin), filepath.Base(bin)))
	}
	p.write("toolroom/toolroom.yaml", "models: {default: play, providers: {play: {kind: scripted, file: script.yaml}}}\n"+configuration)
	p.write("toolroom/script.yaml", script)
	p.write("root/notes.txt", "the needle is here\n")
	return p
}

// host starts mcp-host as a server of all tools.
func (p *place) host(flags ...string) *mcpkittest.Client {
	p.t.Helper()
	q := *p
	q.bin = filepath.Join(filepath.Dir(p.bin), strings.Replace(filepath.Base(p.bin), "dispatch_agent", "host", 1))
	return q.serve(append([]string{"stdio"}, flags...)...)
}

// TestARealAgent: without a host, an agent has the tools in the directory of
// the binary, within its ceiling, whatever its model calls; so has an agent
// that it dispatches.
func TestARealAgent(t *testing.T) {
	p := newRealPlace(t, "")
	c := p.serve()
	r := dispatch(c, "prompt", "find needle")
	require.False(t, r.IsError, r.Text)
	require.Contains(t, r.Text, "notes.txt")
	require.Contains(t, r.Text, "the needle is here")
	require.Regexp(t, `\nagent a\w+ · goal reached · 2 turns · \S+ in / \S+ out · \S+ · grep×1\n$`, r.Text)
	id := r.Meta["agent_id"].(string)
	r = dispatch(c, "prompt", "what was that", "agent_id", id)
	require.Contains(t, r.Text, "I was asked: what was that\n\nagent "+id+" · goal reached · 3 turns")

	r = dispatch(c, "prompt", "write new.txt", "agent", "general")
	require.Equal(t, 1, strings.Count(r.Text, "TOOL_NOT_FOUND"), "of the last result: %s", r.Text)
	require.NoFileExists(t, p.file("root/new.txt"))
	r = dispatch(p.serve("--tools", "edit"), "prompt", "write new.txt", "agent", "general", "tools", []string{"replace"})
	require.FileExists(t, p.file("root/new.txt"), r.Text)

	p.write("root/id_ed25519", "the needle of a key\n")
	r = dispatch(p.serve("--allow-path", "id_ed25519"), "prompt", "find of.a.key")
	require.Contains(t, r.Text, "the needle of a key", "what this server may do its agents' tools may")

	c = p.serve("--tools", "grep,replace,dispatch_agent")
	r = dispatch(c, "prompt", "through find needle", "agent", "general")
	require.Contains(t, r.Text, "the needle is here")
	require.Contains(t, r.Text, "dispatch_agent×1")
	r = dispatch(c, "prompt", "through through find needle", "agent", "general")
	require.Contains(t, r.Text, `no tool "dispatch_agent"`)
	require.NotContains(t, r.Text, "the needle is here")
	r = dispatch(c, "prompt", "through write other.txt", "agent", "general", "tools", []string{"grep", "dispatch_agent"})
	require.NoFileExists(t, p.file("root/other.txt"), r.Text)
}

// TestUnderAHost: under a host, an agent's calls count as its caller's: the
// policy applies to them and the audit log has them; so do the calls of nested
// agents.
func TestUnderAHost(t *testing.T) {
	p := newRealPlace(t, "policy: {rules: [{tool: grep, do: deny, why: not today}]}\n")
	p.env = []string{ceilingVariable + "=grep,view,dispatch_agent"}
	c := p.host()
	r := dispatch(c, "prompt", "find needle")
	require.Contains(t, r.Text, "not today")
	require.Contains(t, r.Text, "goal reached")
	r = dispatch(c, "prompt", "through find needle", "agent", "general")
	require.Equal(t, 2, strings.Count(r.Text, "goal reached"), r.Text)
	require.Contains(t, r.Text, "not today")

	p.write("toolroom/toolroom.yaml", "models: {default: play, providers: {play: {kind: scripted, file: script.yaml}}}\n")
	c = p.host()
	r = dispatch(c, "prompt", "through find needle", "agent", "general")
	require.Contains(t, r.Text, "the needle is here")
	r = dispatch(c, "prompt", "through through find needle", "agent", "general")
	require.Contains(t, r.Text, `no tool "dispatch_agent"`)
	require.NotContains(t, r.Text, "the needle is here")
	r = dispatch(c, "prompt", "find needle")
	require.Contains(t, r.Text, "the needle is here", r.Text)
	// A handed-back agent keeps its tools.
	r = dispatch(c, "prompt", "find needle", "wait_ms", 0)
	require.Equal(t, true, r.Meta["running"], r.Text)
	r = dispatch(c, "agent_id", r.Meta["agent_id"])
	require.Contains(t, r.Text, "the needle is here")
	require.Zero(t, c.Close())
	log := p.audit()
	require.Contains(t, log, `"tool":"grep"`)
	require.Contains(t, log, `"depth":1`)
	require.Contains(t, log, `"depth":2`)
	require.NotContains(t, log, `"depth":3`)
}

// TestTheBoundsOfAKind: the limits that the user configured for a kind of
// agents apply here too.
func TestTheBoundsOfAKind(t *testing.T) {
	p := newRealPlace(t, "agents: {brief: {instructions: be brief, tools: [grep], max_turns: 1}}\n")
	r := dispatch(p.serve(), "prompt", "find needle", "agent", "brief", "max_turns", 9)
	require.Contains(t, r.Text, " · turn limit", r.Text)
}

// An agent whose call needs approval ends and says so; after the approval the
// agent continues, and the call is made.
func TestAnAgentWaitsForApprovalUnderAHost(t *testing.T) {
	p := newRealPlace(t, "policy: {rules: [{tool: replace, do: ask, why: it writes}]}\n")
	p.env = []string{ceilingVariable + "=all"}
	c := p.host()
	r := dispatch(c, "prompt", "write new.txt", "agent", "general")
	require.Equal(t, "PENDING_APPROVAL", r.Code, r.Text)
	require.Contains(t, r.Text, "agent needs approval for replace (")
	require.Contains(t, r.Text, " · approval pending · 1 turn · ")
	require.NoFileExists(t, p.file("root/new.txt"))
	_, rest, _ := strings.Cut(r.Text, "needs approval for replace (")
	id, _, _ := strings.Cut(rest, ")")
	approve := exec.Command(filepath.Join(filepath.Dir(p.bin), strings.Replace(filepath.Base(p.bin), "dispatch_agent", "host", 1)), "--state", p.state, "approvals", "approve", id)
	approve.Env = []string{"HOME=" + p.dir, "XDG_CONFIG_HOME=" + p.dir, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
	out, err := approve.CombinedOutput()
	require.NoError(t, err, string(out))
	r = dispatch(c, "prompt", "write new.txt", "agent_id", r.Meta["agent_id"])
	require.FileExists(t, p.file("root/new.txt"), r.Text)
	require.Contains(t, r.Text, "goal reached")
}

// audit returns the audit log of the calls.
func (p *place) audit() string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "audit", "*"))
	require.NoError(p.t, err)
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(p.t, err)
		all.Write(text)
	}
	return all.String()
}

// Agents that each dispatch agents, more than may run at once, all end: there
// is no deadlock between agents that wait for each other.
func TestManyAgentsOfAgentsEnd(t *testing.T) {
	p := newRealPlace(t, "")
	p.env = []string{ceilingVariable + "=all"}
	for name, c := range map[string]*mcpkittest.Client{"under a host": p.host(), "by itself": p.serve("--tools", "grep,dispatch_agent", "--max-agents", "3")} {
		var ids []string
		for i := range 5 {
			ids = append(ids, c.Go("tools/call", mcpkittest.CallParams("dispatch_agent", arg("agent", "general", "prompt", fmt.Sprintf("twice say %d", i)))))
		}
		for _, id := range ids {
			r, err := mcpkittest.ParseResult(c.Answer(id).Result)
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(r.Text, "goal reached"), "its own, and that of the result that it tells of")
			require.Contains(t, r.Text, "dispatch_agent×2", name)
		}
	}
}

// TestAnAgentHasItsOwnViews: an agent has a separate session. If the client
// that dispatched it has viewed a file, the agent has not.
func TestAnAgentHasItsOwnViews(t *testing.T) {
	p := newRealPlace(t, "")
	p.env = []string{ceilingVariable + "=all"}
	c := p.host()
	require.Contains(t, c.Call("view", arg("file_path", "notes.txt")).Text, "the needle")
	p.write("root/notes.txt", "changed since\n")
	r := c.Call("replace", arg("file_path", "notes.txt", "content", "x"))
	require.Equal(t, "STALE", r.Code, r.Text)
	r = dispatch(c, "prompt", "write notes.txt", "agent", "general")
	text, err := os.ReadFile(p.file("root/notes.txt"))
	require.NoError(t, err)
	require.Equal(t, "x", string(text), r.Text)

	// A view by the agent does not count as a view by the client.
	p.write("root/notes.txt", "changed again\n")
	r = c.Call("replace", arg("file_path", "notes.txt", "content", "y"))
	require.Equal(t, "STALE", r.Code, r.Text)
}
