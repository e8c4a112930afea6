package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A question is a question to the user during a turn. The goroutine that owns the
// terminal asks it.
type question struct {
	ctx    context.Context                        // when it ends, nobody waits for the answer
	put    func(ctx context.Context) (any, error) // asks, and returns the answer
	answer chan<- reply
}

// reply is the user's answer to a question, or the reason for its absence.
type reply struct {
	value any
	err   error
}

// canAsk reports whether a user can answer questions: at a terminal, or typed into a pipe,
// except with JSON output.
func (c *Chat) canAsk() bool { return !c.cfg.JSON && (c.editor != nil || c.cfg.Typing) }

// askUser queues a question and waits for the answer, which put returns in the goroutine
// of the terminal. The time does not count for the call or the turn. It returns ctx.Err()
// if ctx ends before the answer.
func (c *Chat) askUser(ctx context.Context, put func(ctx context.Context) (any, error)) (any, error) {
	if in, ok := ctx.Value(askingCallKey{}).(*askingCall); ok {
		if in.ctx != nil {
			defer call.PauseClocks(in.ctx)() // its context need not descend from in.ctx
		}
		began := time.Now()
		defer func() { c.waitTimes.add(in.call.ID, time.Since(began)) }()
	}
	answer := make(chan reply, 1)
	select {
	case c.questions <- &question{ctx, put, answer}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-answer:
		return r.value, r.err
	case <-ctx.Done(): // it was answered elsewhere, or the time is over
		return nil, ctx.Err()
	}
}

// letUserAnswer lets the user answer a question, and sends the reply to the asking
// server. If the user gives up instead (Ctrl-C), it first calls interrupt, and returns
// its error. An error means that the chat must end. It returns nil and asks nothing if
// the question has already ended.
func (c *Chat) letUserAnswer(q *question, interrupt func() error) (endErr error) {
	if q.ctx.Err() != nil {
		return nil
	}
	ctx, done := c.interruptible(q.ctx)
	defer done()
	defer c.holdTerminal()()
	value, err := q.put(ctx)
	if errors.Is(err, lineedit.ErrInterrupt) || context.Cause(ctx) == lineedit.ErrInterrupt { //nolint:errorlint // exactly this error
		err, endErr = context.Canceled, interrupt()
	}
	q.answer <- reply{value, err}
	return endErr
}

// holdTerminal gives the terminal to a question until release is called. Keys that were
// pressed before do not count as an answer.
func (c *Chat) holdTerminal() (release func()) {
	if c.editor == nil {
		return func() {}
	}
	c.editor.DiscardInput()
	c.screen.Hold()
	return c.screen.Release
}

// callTool is the tool that calls another tool by its name; see package toolsearch.
const callTool = "call_tool"

// askingCall is the call during which a question is asked.
type askingCall struct {
	ctx     context.Context // context of the call, whose clocks are paused during the question
	call    *llm.ToolCall
	verdict *verdict // the user's decision as far as a form cannot express it; nil: none
	agreed  bool     // the user has agreed to the call that contains this one
}

// askingCallKey is the context key of the *askingCall of a call.
type askingCallKey struct{}

// approvingTools are tools that ask the user about calls that need approval.
type approvingTools struct {
	agent.Tools
	chat   *Chat
	agreed bool // the user has agreed to the call that contains these calls
}

// Call makes a call. While it needs approval, it asks the user, decides the request, and
// repeats the call. If the user cannot be asked, the call's PendingError is returned.
func (a *approvingTools) Call(ctx context.Context, tc *llm.ToolCall, progress func(string)) (*call.Result, error) {
	in := &askingCall{ctx: ctx, call: tc, agreed: a.agreed}
	ctx = context.WithValue(ctx, askingCallKey{}, in)
	for {
		res, err := a.Tools.Call(ctx, tc, progress)
		var p *call.PendingError
		if !errors.As(err, &p) || p.Pending.ID == "" || !a.chat.canAsk() || a.chat.cfg.Host.Approve == nil {
			return res, err
		}
		var d verdict
		if in.verdict != nil {
			d, in.verdict = *in.verdict, nil
		} else {
			text := fmt.Sprintf("May %s be called? %s.", p.Pending.Tool, p.Pending.Reason)
			if d, err = a.chat.askApproval(ctx, in, p.Pending.Tool, text, p.Pending.Args); err != nil {
				return nil, err
			}
		}
		err = a.chat.cfg.Host.Approve(ctx, p.Pending.ID, d.approve, d.args)
		if err != nil && !toolerr.Is(err, toolerr.Conflict) && !toolerr.Is(err, toolerr.NotFound) {
			if d.args == nil {
				return nil, err
			}
			a.chat.view.showNote("%v", err) // the edited arguments are invalid: ask again
		}
	}
}

// verdict is the user's decision about a call.
type verdict struct {
	approve bool
	args    json.RawMessage // replace the call's arguments; nil: unchanged
}

// askApproval asks the user to approve a call of tool with args; text is the question. It
// approves without asking if the user agreed to the call that contains it, or to all calls
// of the tool. It returns an error if the user interrupts, or cannot be asked.
func (c *Chat) askApproval(ctx context.Context, in *askingCall, tool, text string, args json.RawMessage) (verdict, error) {
	if in.agreed {
		return verdict{approve: true}, nil
	}
	value, err := c.askUser(ctx, func(ctx context.Context) (any, error) {
		if c.always[tool] {
			return verdict{approve: true}, nil
		}
		about := text + "\n" + formatProposal(args) + "\n"
		shown, all := firstShown(about)
		c.show(strings.TrimSuffix(shown, "\n") + "\n")
		for {
			prompt, keys := "Allow "+c.itOrAllLines(about)+"? [y]es, [n]o, [a]lways "+tool+" in this chat, [e]dit: ", "ynae"
			if !all {
				prompt, keys = "[v]iew all of it, [n]o, [e]dit: ", "vne"
			}
			key, err := c.askKey(ctx, prompt, keys)
			if err != nil {
				return nil, err
			}
			switch key {
			case 'v':
				c.show(about)
				all = true
				continue
			case 'a':
				c.always[tool] = true
				fallthrough
			case 'y':
				return verdict{approve: true}, nil
			case 'n':
				return verdict{}, nil
			}
			edited, err := c.askLine(ctx, "arguments (Esc goes back): ", string(args))
			if errors.Is(err, lineedit.ErrEscape) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if _, err := jsonrpc.Members([]byte(edited)); err != nil {
				c.show(fmt.Sprintf("that is not one JSON object: %v\n", err))
				continue
			}
			return verdict{approve: true, args: json.RawMessage(edited)}, nil
		}
	})
	if err != nil {
		return verdict{}, err
	}
	return value.(verdict), nil //nolint:forcetypeassert // as above
}

// itOrAllLines returns "it", or "all N lines" if the text about the call is longer than the
// terminal, so that its beginning has scrolled out of sight.
func (c *Chat) itOrAllLines(about string) string {
	if c.cfg.Terminal == nil {
		return "it"
	}
	columns, rows := c.cfg.Terminal.Size()
	n := 0
	for line := range strings.Lines(screen.Clean(about)) {
		n += 1 + (screen.Columns(strings.TrimSuffix(line, "\n"))-1)/max(columns, 1)
	}
	if n < rows {
		return "it"
	}
	return fmt.Sprintf("all %d lines", n)
}

// formattedArgs formats arguments for a user's decision, indented by two spaces.
func formattedArgs(args json.RawMessage) string {
	return "  " + strings.ReplaceAll(approve.FormatJSON(args), "\n", "\n  ")
}

// show shows text above a question, with control characters escaped: at the terminal, or on
// standard error.
func (c *Chat) show(text string) {
	text = screen.Clean(text)
	if c.editor != nil {
		fmt.Fprint(c.cfg.Out, text) //nolint:errcheck // the question itself reports it
		return
	}
	fmt.Fprint(c.cfg.Err, text) //nolint:errcheck // likewise
}

// askKey asks for one of the keys in choices, until one is pressed, and returns it in lower
// case. Without a terminal it takes the first character of a line. It returns
// lineedit.ErrInterrupt after an interrupt, and io.EOF at the end of the input.
func (c *Chat) askKey(ctx context.Context, prompt, choices string) (rune, error) {
	if c.editor != nil {
		return c.editor.ReadKey(ctx, prompt, choices)
	}
	for {
		line, err := c.askLine(ctx, prompt, "")
		if err != nil {
			return 0, err
		}
		if r, _ := utf8.DecodeRuneInString(strings.ToLower(strings.TrimSpace(line))); strings.ContainsRune(choices, r) {
			return r, nil
		}
	}
}

// askLine asks for a line, which at a terminal begins as initial. There, Esc cancels it
// with lineedit.ErrEscape, and an interrupt with lineedit.ErrInterrupt. It returns io.EOF
// at the end of the input.
func (c *Chat) askLine(ctx context.Context, prompt, initial string) (string, error) {
	if c.editor != nil {
		h := c.editor.History
		c.editor.History = nil
		defer func() { c.editor.History = h }()
		return c.editor.ReadOrEscape(ctx, prompt, initial)
	}
	c.show(prompt)
	return c.source.ReadLine(ctx)
}

// confirm asks a yes-or-no question of the chat itself. It returns false after an interrupt,
// and if the user cannot be asked.
func (c *Chat) confirm(ctx context.Context, text string) (bool, error) {
	if !c.canAsk() {
		return false, nil
	}
	ctx, done := c.interruptible(ctx)
	defer done()
	defer c.holdTerminal()()
	key, err := c.askKey(ctx, text+" [y]es, [n]o: ", "yn")
	if errors.Is(err, lineedit.ErrInterrupt) || context.Cause(ctx) == lineedit.ErrInterrupt { //nolint:errorlint // exactly this error
		return false, nil
	}
	return key == 'y', err
}

// form is a server's question to the user (elicitation/create).
type form struct {
	Message string `json:"message"`
	Mode    string `json:"mode"`
	URL     string `json:"url"`
	Schema  struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	} `json:"requestedSchema"`
}

// field is the schema of one field of a form.
type field struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	Default     json.RawMessage `json:"default"`
}

// Ask answers a server's question to the host's client by asking the user; see call.Ask. It
// returns INVALID_INPUT for other methods than elicitation/create, and INVALID_PARAMS for
// malformed params.
func (c *Chat) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var f form
	if method != "elicitation/create" {
		return nil, toolerr.New(toolerr.InvalidInput, "the chat does not support %s", method)
	}
	if err := json.Unmarshal(params, &f); err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "%s: %w", method, err)
	}
	in, _ := ctx.Value(askingCallKey{}).(*askingCall)
	if in != nil && call.IsHostQuestion(ctx) {
		dismiss := json.RawMessage(`{"action":"cancel"}`) // the call then waits; see approvingTools.Call
		if in.call.Name == callTool {
			return dismiss, nil // it is about another tool and its arguments
		}
		text, _, _ := strings.Cut(f.Message, "\n")
		v, err := c.askApproval(ctx, in, in.call.Name, text, in.call.Args)
		switch {
		case err != nil:
			return nil, err
		case c.cfg.Host.Approve != nil && (v.args != nil || !v.approve): // edited arguments, or a denial only for this call
			in.verdict = &v
			return dismiss, nil
		case v.approve:
			return json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`), nil
		}
		return json.RawMessage(`{"action":"accept","content":{"decision":"deny"}}`), nil
	}
	value, err := c.askUser(ctx, func(ctx context.Context) (any, error) { return c.answerForm(ctx, f) })
	if errors.Is(err, lineedit.ErrEscape) {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	if err != nil {
		return nil, err
	}
	return value.(json.RawMessage), nil //nolint:forcetypeassert // fill returns this type
}

// answerForm asks the user to fill in a form, and returns the result of elicitation/create:
// accept with the content, or decline. It returns the errors of reading the input;
// lineedit.ErrEscape means that the user cancelled.
func (c *Chat) answerForm(ctx context.Context, f form) (json.RawMessage, error) {
	c.show(f.Message + "\n")
	if f.Mode == "url" {
		c.show("It asks you to visit " + f.URL + "\n")
	}
	content := map[string]any{}
	names := slices.Clone(f.Schema.Required)
	for name := range f.Schema.Properties {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[len(f.Schema.Required):])
	if len(names) == 0 {
		key, err := c.askKey(ctx, "Agree? [y]es, [n]o: ", "yn")
		if key == 'y' {
			return json.RawMessage(`{"action":"accept","content":{}}`), err
		}
		return json.RawMessage(`{"action":"decline"}`), err
	}
	for _, name := range names {
		value, err := c.askField(ctx, name, f.Schema.Properties[name], slices.Contains(f.Schema.Required, name))
		if err != nil {
			return nil, err
		}
		if value != nil {
			content[name] = value
		}
	}
	return jsonrpc.Marshal(map[string]any{"action": "accept", "content": content})
}

// askField asks for a field of a form, until the answer fits its type. It returns a bool,
// string, json.Number or the default; nil: the field is left out. It returns the errors of
// askLine.
func (c *Chat) askField(ctx context.Context, name string, f field, required bool) (any, error) {
	label := screen.OneLine(name, 40)
	if f.Title != "" {
		label = screen.OneLine(f.Title, 60)
	}
	if f.Type == "boolean" {
		key, err := c.askKey(ctx, label+"? [y]es, [n]o: ", "yn")
		return key == 'y', err
	}
	if f.Description != "" {
		c.show(f.Description + "\n")
	}
	if len(f.Enum) > 0 {
		label += " (" + screen.OneLine(strings.Join(f.Enum, ", "), 200) + ")"
	}
	for {
		text, err := c.askLine(ctx, label+": ", "")
		if err != nil {
			return nil, err
		}
		text = strings.TrimSpace(text)
		var number json.Number
		switch {
		case text == "" && !required:
			return nil, nil
		case text == "" && f.Default != nil:
			return f.Default, nil
		case len(f.Enum) > 0 && !slices.Contains(f.Enum, text):
		case (f.Type == "number" || f.Type == "integer") && json.Unmarshal([]byte(text), &number) != nil:
		case f.Type == "number" || f.Type == "integer":
			return number, nil
		default:
			return text, nil
		}
	}
}
