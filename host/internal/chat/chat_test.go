package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/scripted"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// bench is a chat at a terminal that a test types at. Its tools: echo answers with
// its arguments; guarded waits for approval; ask asks the user by a form; hang ends
// when it is given up; write and edit keep files in memory, with a journal.
type bench struct {
	t          *testing.T
	keys       *io.PipeWriter
	interrupts chan os.Signal
	done       chan error
	raw, quiet int

	mu       sync.Mutex
	out      bytes.Buffer
	changed  chan struct{}
	decided  []string
	proposed string // unless "", the arguments that guarded is asked about
	calls    []string
	asked    *llm.Request
	files    map[string]string
	journal  *state.Store
}

func (b *bench) Raw() (func(), error)      { return b.count(&b.raw), nil }
func (b *bench) DisableEcho() func()       { return b.count(&b.quiet) }
func (b *bench) FlushInput()               {}
func (b *bench) Size() (columns, rows int) { return 100, 40 }

func (b *bench) count(n *int) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	*n++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		*n--
	}
}

func (b *bench) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return b.out.Write(text)
}

// Models: one that the test scripts.
func (b *bench) List(context.Context) []provider.Info { return []provider.Info{{Name: "demo"}} }

func (b *bench) Get(_ context.Context, name string) (provider.Model, error) {
	if name != "" && name != "demo" {
		return nil, toolerr.New(toolerr.NoModel, "there is no model %q", name)
	}
	m, err := scripted.Parse("test", []byte(script), provider.Info{Name: "demo"})
	return heard{m, b}, err
}

// heard is a model that notes what it is asked.
type heard struct {
	provider.Model
	b *bench
}

func (h heard) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	h.b.mu.Lock()
	h.b.asked = r
	h.b.mu.Unlock()
	return h.Model.Ask(ctx, r, on)
}

const script = `
answers:
  - when: {message: "call (\\w+) (.*)"}
    calls: [{name: "{{1}}", args: {text: "{{2}}"}}]
  - when: {message: "change (\\w+) and (\\w+)"}
    calls: [{name: write, args: {file_path: "{{1}}"}}, {name: write, args: {file_path: "{{2}}"}}]
  - when: {message: "change (\\w+)"}
    calls: [{name: write, args: {file_path: "{{1}}"}}]
  - when: {tool: echo, result: "stay"}
    delay: 1h
    text: never
  - when: {tool: "*"}
    text: "It said {{result}}."
  - when: {message: "^fail$"}
    error: AUTH_FAILED
  - when: {message: "^hang$"}
    delay: 1h
    text: never
  - when: {message: "(?s)(.*)"}
    text: "You said {{1}}."
`

// tools are those of a turn.
type tools struct {
	b   *bench
	ask call.Ask
}

func (ts tools) Begin() error { return nil }
func (ts tools) End() error   { return nil }
func (ts tools) List(context.Context, *llm.Choice) ([]llm.Tool, *llm.Choice, error) {
	var all []llm.Tool
	for _, name := range []string{"echo", "guarded", "ask", "pose", "own", "hang", "write", "panic"} {
		all = append(all, llm.Tool{Name: name})
	}
	return all, nil, nil
}

func text(s string, isError bool) *call.Result {
	raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": s}}, "isError": isError}) //nolint:errcheck // it encodes
	return &call.Result{Raw: raw}
}

func (ts tools) Call(ctx context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
	b := ts.b
	b.mu.Lock()
	b.calls = append(b.calls, c.Name+string(c.Args))
	b.mu.Unlock()
	switch c.Name {
	case "guarded":
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := len(b.decided); n > 0 {
			verdict := b.decided[n-1]
			b.decided = nil
			if verdict == "deny" {
				return nil, toolerr.New(toolerr.PolicyDenied, "it was denied")
			}
			return text("guarded "+verdict, false), nil
		}
		if b.proposed != "" {
			c.Args = json.RawMessage(b.proposed)
		}
		return nil, &call.PendingError{Pending: call.Pending{ID: "p1", Tool: c.Name, Reason: "a rule asks", Args: c.Args}}
	case "ask":
		raw, err := ts.ask(ctx, "elicitation/create", json.RawMessage(`{"message":"Which?\u001b[2J","requestedSchema":{"properties":{
			"colour":{"type":"string","enum":["red","blue"]},"n":{"type":"integer"},"sure":{"type":"boolean"}},"required":["colour","n","sure"]}}`))
		return text(string(raw), false), err
	case "pose", "own":
		if c.Name == "own" {
			ctx = call.WithHostQuestion(ctx)
		}
		raw, err := ts.ask(ctx, "elicitation/create", json.RawMessage(`{"message":"May it be called?","requestedSchema":{"properties":{
			"decision":{"type":"string","enum":["approve","deny"]}},"required":["decision"]}}`))
		return text(string(raw), false), err
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "write", "edit":
		return b.edit(c)
	}
	return text(string(c.Args), false), nil
}

// edit writes to a file, or takes back what was written last, as the tool does.
func (b *bench) edit(c *llm.ToolCall) (*call.Result, error) {
	var a struct {
		Path   string `json:"file_path"`
		Undo   bool   `json:"undo"`
		DryRun bool   `json:"dry_run"`
	}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	path := "/root/x/" + strings.TrimPrefix(a.Path, "/root/x/")
	was := []byte(b.files[path])
	if !a.Undo {
		b.files[path] += "more\n"
		p, err := b.journal.RecordChange(state.NewChange("edit", path, was, []byte(b.files[path])))
		return text("written", false), errors.Join(err, p.Commit())
	}
	change, err := b.journal.LastChange(path, state.VersionOf(was))
	if err != nil {
		return text(err.Error(), true), nil //nolint:nilerr // as a tool says it
	}
	before, err := change.Restore(was)
	if err == nil && !a.DryRun {
		b.files[path] = string(before)
		err = change.Forget()
	}
	return text("undone", false), err
}

func newBench(t *testing.T, change func(*chat.Config)) *bench {
	t.Helper()
	in, keys := io.Pipe()
	b := &bench{
		t: t, keys: keys, interrupts: make(chan os.Signal), done: make(chan error, 1), changed: make(chan struct{}, 1),
		files: map[string]string{}, journal: state.New(state.Config{Dir: t.TempDir()}),
	}
	cfg := chat.Config{
		In: in, Out: b, Err: b, Terminal: b, Typing: true, Interrupts: b.interrupts, Bounds: agent.Bounds{Time: -1},
		Host: chat.Host{
			Models: b,
			Turn:   func(ask call.Ask) chat.Tools { return tools{b, ask} },
			Approve: func(_ context.Context, id string, ok bool, args json.RawMessage) error {
				if string(args) == `{"bad":1}` {
					return toolerr.New(toolerr.InvalidParams, "the arguments are not right")
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				b.decided = append(b.decided, map[bool]string{true: "approve", false: "deny"}[ok]+string(args))
				return nil
			},
			Changes: b.journal.Changes,
		},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := chat.New(t.Context(), cfg)
	require.NoError(t, err)
	go func() {
		defer c.Close()
		b.done <- c.Talk(t.Context())
	}()
	t.Cleanup(func() { keys.Close() })
	return b
}

// seen waits until a text was written since the last one, and returns what was.
func (b *bench) seen(want string) string {
	b.t.Helper()
	late := time.After(time.Minute)
	for {
		b.mu.Lock()
		got := b.out.String()
		if at := strings.Index(got, want); at >= 0 {
			b.out.Next(at + len(want))
			b.mu.Unlock()
			return got[:at+len(want)]
		}
		b.mu.Unlock()
		select {
		case <-b.changed:
		case <-late:
			require.Fail(b.t, "not seen", "%q in %q", want, got)
		}
	}
}

// prompted waits for the prompt.
func (b *bench) prompted() string {
	b.t.Helper()
	return b.seen("\x1b[?2004h\r\x1b[J> ")
}

func (b *bench) press(keys string) {
	b.t.Helper()
	_, err := io.WriteString(b.keys, keys)
	require.NoError(b.t, err)
}

// quit ends the chat, and holds that the terminal is as it was.
func (b *bench) quit() {
	b.t.Helper()
	b.prompted()
	b.press("/quit\r")
	require.NoError(b.t, <-b.done)
	require.Zero(b.t, b.raw)
	require.Zero(b.t, b.quiet)
}

func TestTalking(t *testing.T) {
	b := newBench(t, nil)
	b.prompted()
	b.press("hello\x1b\rthere\r")
	b.seen("You said hello\nthere.\n")
	b.prompted()
	b.press("call echo abc\r")
	b.seen("✓ echo text=abc")
	b.seen(`It said {"text":"abc"}.`)
	b.prompted()
	b.press("/model nosuch\r")
	b.seen(`/model: NO_MODEL: there is no model "nosuch"`)
	b.prompted()
	b.press("/etc/hosts is said\r")
	b.seen("You said /etc/hosts is said.")
	b.prompted()
	b.press(" /nosuch is said, too\r")
	b.seen("You said  /nosuch is said, too.")
	b.quit()
}

func TestApproval(t *testing.T) {
	b := newBench(t, nil)
	for _, step := range []struct{ keys, want string }{
		{"y", "✓ guarded text=1"}, {"n", "✗ guarded text=1"}, {"xz\rN", "POLICY_DENIED: it was denied"},
		{"e\x15{\"bad\":1}\r", "the arguments are not right"}, {"e\x15{\"text\":\"2\"}\r", `guarded approve{"text":"2"}`}, {"e\x15no\ry", "guarded approve"},
		{"a", "✓ guarded text=1"}, {"", "✓ guarded text=1"}, // not asked any more
	} {
		if !strings.Contains(step.want, `"2"`) { // else it is asked again
			b.prompted()
			b.press("call guarded 1\r")
		}
		if step.keys != "" {
			b.seen("May guarded be called? a rule asks.\n  {\n    \"text\": \"1\"\n  }\n")
			b.seen("Allow it?")
		}
		b.press(step.keys)
		b.seen(step.want)
	}
	b.quit()
}

func TestAServerAsks(t *testing.T) {
	b := newBench(t, nil)
	b.prompted()
	b.press("call ask 1\r")
	b.seen(`Which?\u001b[2J`)
	b.press("green\rred\rfive\r5\ry")
	b.seen(`It said {"action":"accept","content":{"colour":"red","n":5,"sure":true}}.`)
	b.quit()
}

// A server's form that looks like the host's question for approval is a form.
func TestAFormIsNoApproval(t *testing.T) {
	b := newBench(t, nil)
	b.prompted()
	b.press("call own 1\r")
	b.seen("Allow it?")
	b.press("y")
	b.prompted()
	b.press("call pose 1\r")
	require.NotContains(t, b.seen("decision"), "Allow it?")
	b.press("deny\r")
	b.seen(`"decision":"deny"`)
	b.quit()
}

// Ctrl-C gives up the turn, and not the chat; so it does while a question stands.
func TestGivingUp(t *testing.T) {
	b := newBench(t, nil)
	for _, said := range []string{"call hang 1", "hang"} {
		b.prompted()
		b.press(said + "\r")
		b.seen("… ")
		b.interrupts <- os.Interrupt
		b.seen("cancelled")
	}
	b.prompted()
	b.press("call guarded 1\r")
	b.seen("Allow it?")
	b.press("\x03")
	b.seen("cancelled")
	b.prompted()
	b.press("call ask 1\r")
	b.seen("colour")
	b.press("\x03")
	b.seen("cancelled")
	b.prompted()
	b.press("and now\r")
	b.seen("You said and now.")
	b.prompted()
	b.press("\x03")
	b.seen("Ctrl-C again")
	b.prompted()
	b.press("\x03")
	require.NoError(t, <-b.done)
	require.Zero(t, b.raw)
	require.Zero(t, b.quiet)
}

func TestUndo(t *testing.T) {
	b := newBench(t, nil)
	b.files["/root/x/a"] = "was\n"
	say := func(keys, want string) {
		t.Helper()
		b.prompted()
		b.press(keys)
		b.seen(want)
	}
	say("/undo\r", "no turn of this chat changed files with the tools")
	say("change a\r", "It said written.")
	say("change a and b\r", "It said written.")
	b.mu.Lock()
	p, err := b.journal.RecordChange(state.NewChange("edit", "/root/x/foreign", nil, []byte("x")))
	b.mu.Unlock()
	require.NoError(t, err)
	require.NoError(t, p.Commit())
	require.Equal(t, "was\nmore\nmore\n", b.files["/root/x/a"])
	say("/undo\r", "Undo the changes of 2 files?")
	b.press("n")
	say("/undo\r", "Undo the changes of 2 files?")
	b.press("y")
	b.seen("undone: ")
	require.Equal(t, "was\nmore\n", b.files["/root/x/a"])
	require.Empty(t, b.files["/root/x/b"])
	say("go on\r", "You said (The user has undone your last changes to these files")
	b.seen("go on.")

	// What something else has changed since stays as it is.
	b.mu.Lock()
	b.files["/root/x/a"] += "theirs\n"
	b.mu.Unlock()
	say("/undo\r", "/root/x/a  not undone: ")
	b.seen("no change of the last turn can be undone")
	b.mu.Lock()
	b.files["/root/x/a"] = "was\nmore\n"
	b.mu.Unlock()
	say("/undo\r", "Undo the changes of 1 file?")
	b.press("y")
	b.seen("undone: /root/x/a")
	require.Equal(t, "was\n", b.files["/root/x/a"])
	say("/undo\r", "no turn of this chat changed files with the tools")
	b.quit()
}

// A session of the API's may have calls that their client never answered: models are
// told so, since they take no call without a result.
func TestGoingOnWhereACallHasNoResult(t *testing.T) {
	kept := memory.New(memory.Config{})
	book := &conversation.Store{Keys: kept.Keys, Log: kept.Log, Blobs: kept.Blobs}
	s, err := book.Create(t.Context(), conversation.Session{})
	require.NoError(t, err)
	_, err = book.Append(t.Context(), s.ID,
		llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: "x"}}},
		llm.Message{Role: llm.AssistantRole, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "c", Name: "theirs", Args: json.RawMessage(`{}`)}}}})
	require.NoError(t, err)
	b := newBench(t, func(c *chat.Config) { c.Host.Sessions, c.Session = book, s.ID })
	b.prompted()
	b.press("hello\r")
	b.seen("You said hello.")
	var roles []llm.Role
	for _, m := range b.asked.Messages {
		roles = append(roles, m.Role)
	}
	require.Equal(t, []llm.Role{llm.UserRole, llm.AssistantRole, llm.ToolRole, llm.UserRole}, roles)
	require.Equal(t, "c", b.asked.Messages[2].Parts[0].ToolResult.ID)
	b.quit()
}

func TestAPanicPutsTheTerminalRight(t *testing.T) {
	b := newBench(t, nil)
	c, err := chat.New(t.Context(), chat.Config{
		In: strings.NewReader("x"), Out: b, Err: b, Terminal: b,
		Host: chat.Host{Models: b, Turn: func(call.Ask) chat.Tools { panic("in a turn") }},
	})
	require.NoError(t, err)
	require.Panics(t, func() { c.Once(t.Context(), "x") }) //nolint:errcheck // it panics
	b.quit()
}
