// Package chat runs a conversation with a model at a terminal, or through pipes: it
// reads the user's messages, lets the agent loop answer with the host's tools, and
// shows each step.
//
// At a terminal, answers are shown as Markdown (package markdown), each tool call has
// a line, approvals are asked for in place, and Ctrl-C cancels the turn instead of the
// program. Through a pipe, each line of standard input is a message, standard output
// contains only the model's answers, and all other output goes to standard error. With
// JSON, all output is one object a line (see jsonLine).
//
// Text of models and tools reaches a terminal, or a pipe that may lead to one, only
// with control characters escaped: see package screen.
//
// Messages are stored in a session turn by turn; of a cancelled turn the finished part
// is stored. The file changes of a turn can be undone while the files are unchanged
// since: see undo.go.
package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/state"
)

// Models provides the available models.
type Models interface {
	// List returns information about all models.
	List(ctx context.Context) []provider.Info

	// Get returns the model with a name, or the default for "".
	Get(ctx context.Context, name string) (provider.Model, error)
}

// Tools are the tools of one turn. Call End after the turn.
type Tools interface {
	agent.Tools

	// End ends the turn. It returns an error if the policy does not permit the turn to end,
	// for example without a required call.
	End() error
}

// Host holds the functions of the host that a chat uses. A nil function is not
// available.
type Host struct {
	Models Models

	// Turn begins a turn. ask gets the questions of servers and of the host
	// (approvals); nil: the user cannot be asked.
	Turn func(ask call.Ask) Tools

	// Approve decides a call that waits for approval. With args, the call is made with
	// these arguments.
	Approve func(ctx context.Context, id string, approve bool, args json.RawMessage) error

	Tools   func(ctx context.Context) []*call.Tool
	Servers func() []upstream.Status

	Sessions *conversation.Store

	// Changes returns the changes of files by tools since a time, the newest first.
	Changes func(since time.Time) []*state.Change
}

// Terminal is the terminal of a chat.
type Terminal interface {
	lineedit.Terminal

	// DisableEcho turns the echo of typed characters off until restore is called.
	DisableEcho() (restore func())
}

// Config configures a chat.
type Config struct {
	Host Host

	In       io.Reader
	Out, Err io.Writer

	// Terminal is the terminal of In and Out; nil: none. Typing means that a user
	// types In although Terminal is nil.
	Terminal Terminal
	Typing   bool
	Styled   bool // with colours and other styles

	// Interrupts receives Ctrl-C if the terminal sends a signal for it.
	Interrupts <-chan os.Signal

	Model   string // name for Models.Get
	Session string // session to continue: an id, its beginning, or a name; "last": the last one
	System  string
	Request llm.Request // temperature and limits
	Bounds  agent.Bounds

	History *lineedit.History // of typed texts; nil: none
	Notice  string            // shown at the beginning; "": none
	JSON    bool
	Verbose bool
}

// Chat is a running chat.
type Chat struct {
	cfg    Config
	source *lineedit.Source
	editor *lineedit.Editor // nil: no terminal
	out    *errorKeepingWriter
	view   view
	screen *screen.Screen // nil: no terminal

	questions chan *question
	waitTimes waitTimes
	always    map[string]bool // tools whose calls are approved without a question

	model    provider.Model
	history  []llm.Message
	session  *conversation.Session // nil: no message yet
	pending  string                // text for the model, added to the next message
	turns    []*turnChanges        // turns that changed files, oldest first
	spent    map[string]*modelSpending
	order    []string // models in spent, in order of their first use
	failed   bool     // the last turn failed
	quitting bool
}

// ErrFailed means that the last turn did not reach its goal. The user has seen the
// reason.
var ErrFailed = errors.New("the turn failed")

// New returns a chat with the configured model, and with the session to continue, if one is
// configured. It returns an error if either does not exist; without a configured model it
// uses the session's, or the default.
func New(ctx context.Context, cfg Config) (*Chat, error) {
	out := &errorKeepingWriter{to: cfg.Out}
	if cfg.Terminal == nil {
		cfg.Out = out
	}
	c := &Chat{
		cfg: cfg, out: out, source: lineedit.NewSource(cfg.In), questions: make(chan *question),
		always: map[string]bool{}, spent: map[string]*modelSpending{},
	}
	if cfg.History == nil {
		c.cfg.History = &lineedit.History{}
	}
	if t := cfg.Terminal; t != nil {
		width := func() int {
			columns, _ := t.Size()
			return columns
		}
		c.screen = screen.New(cfg.Out, width)
		c.editor = lineedit.New(c.source, cfg.Out, t)
		c.editor.History, c.editor.Complete = c.cfg.History, completions
		c.view = newScreenView(c.screen, c.waitTimes.of, width, cfg.Styled, cfg.Verbose)
	} else {
		c.view = newPipeView(cfg.Out, cfg.Err, cfg.Verbose)
	}
	if cfg.JSON {
		c.view = newJSONView(cfg.Out, func() string {
			if c.session == nil {
				return ""
			}
			return c.session.ID
		})
	}
	if cfg.Session != "" {
		if err := c.resume(ctx, cfg.Session); err != nil {
			return nil, err
		}
	}
	name := cfg.Model
	if name == "" && c.session != nil {
		name = c.session.Model
	}
	m, err := cfg.Host.Models.Get(ctx, name)
	if err != nil && cfg.Model == "" && name != "" { // the session's model does not exist any more
		c.view.showNote("%v", err)
		m, err = cfg.Host.Models.Get(ctx, "")
	}
	c.model = m
	return c, err
}

// Notice shows a notice to the user. Any goroutine may call it.
func (c *Chat) Notice(text string) { c.view.showNote("%s", text) }

// Close stops reading the input. The chat must not be used afterwards.
func (c *Chat) Close() { c.source.Close() }

// Once sends one message, and returns after the answer. It returns ErrFailed if there
// was none, and another error if the answer could not be printed or the turn did not
// stop after an interrupt.
func (c *Chat) Once(ctx context.Context, prompt string) error {
	c.showConfigNotice()
	if err := c.runTurn(ctx, prompt); err != nil {
		return err
	}
	if err := c.out.firstError(); err != nil || !c.failed {
		return err
	}
	return ErrFailed
}

// showConfigNotice shows the notice of the configuration, if there is one.
func (c *Chat) showConfigNotice() {
	if c.cfg.Notice != "" {
		c.view.showNote("%s", c.cfg.Notice)
	}
}

// Talk handles messages until the input ends or the user quits. It returns ErrFailed if
// the last message through a pipe had no answer or was interrupted, and another error
// if the output failed or a turn did not stop.
func (c *Chat) Talk(ctx context.Context) error {
	c.showConfigNotice()
	if c.editor != nil {
		c.greet()
	}
	interrupted := false
	for !c.quitting {
		said, err := c.readMessage(ctx)
		switch {
		case errors.Is(err, lineedit.ErrInterrupt):
			if c.editor == nil && !c.cfg.Typing {
				return ErrFailed
			}
			if interrupted {
				return nil
			}
			interrupted = true
			c.view.showNote("Press Ctrl-C again, Ctrl-D or type /quit to end the chat")
			continue
		case errors.Is(err, io.EOF):
			return c.exitError()
		case err != nil:
			return err
		}
		interrupted = false
		if strings.TrimSpace(said) == "" {
			continue
		}
		if err := c.cfg.History.Add(said); err != nil && c.editor != nil {
			c.view.showNote("the input history is not saved: %v", err)
		}
		if err := c.handleInput(ctx, said); err != nil {
			return err
		}
	}
	return c.exitError()
}

// exitError returns the chat's final error: a write error of the output, or, through
// pipes, ErrFailed if the last message had no answer.
func (c *Chat) exitError() error {
	if err := c.out.firstError(); err != nil {
		return err
	}
	if c.failed && c.editor == nil && !c.cfg.Typing {
		return ErrFailed
	}
	return nil
}

// handleInput runs a command, or sends the text to the model. An unknown command is never
// sent, except a call in the form of the model "command" (/grep {…}); it is reported, and
// c.failed set. It returns the error of the command or turn.
func (c *Chat) handleInput(ctx context.Context, text string) error {
	name, args, ok := splitCommand(text)
	if !ok {
		return c.runTurn(ctx, text)
	}
	why := whyNoCommand(name, text)
	if why == "" {
		return c.runCommand(ctx, name, args)
	}
	if c.model.Info().Name == commandModel && c.hasTool(ctx, name) {
		return c.runTurn(ctx, text)
	}
	c.view.showNote("%s", why)
	c.failed = true
	return nil
}

// hasTool reports whether the host has a tool. It waits until every server was listed once,
// or ctx ends.
func (c *Chat) hasTool(ctx context.Context, name string) bool {
	return c.cfg.Host.Tools != nil && slices.ContainsFunc(c.cfg.Host.Tools(ctx), func(t *call.Tool) bool { return t.Name == name })
}

// greet shows the model, how to get help, and the session that is continued.
func (c *Chat) greet() {
	c.view.showNote("%s; type /help for commands", c.model.Info().Name)
	if c.session != nil {
		c.view.showNote("%s", c.summary())
	}
}

// readMessage reads the next message of the user. It returns lineedit.ErrInterrupt after an
// interrupt, and io.EOF at the end of the input.
func (c *Chat) readMessage(ctx context.Context) (string, error) {
	ctx, done := c.interruptible(ctx)
	defer done()
	var said string
	var err error
	if c.editor != nil {
		c.screen.Hold()
		said, err = c.editor.Read(ctx, "> ", "")
		c.screen.Release()
	} else {
		said, err = c.readContinuedLine(ctx)
	}
	if err != nil && context.Cause(ctx) == lineedit.ErrInterrupt { //nolint:errorlint // exactly this error
		return "", lineedit.ErrInterrupt
	}
	return said, err
}

// readContinuedLine reads a line, and further lines while they end in a backslash, which it
// replaces by the line end. It returns io.EOF at the end of the input.
func (c *Chat) readContinuedLine(ctx context.Context) (string, error) {
	var all []string
	for {
		if c.cfg.Typing && !c.cfg.JSON {
			fmt.Fprint(c.cfg.Err, map[bool]string{true: "> ", false: "  "}[len(all) == 0]) //nolint:errcheck // an error of the output cannot be shown
		}
		line, err := c.source.ReadLine(ctx)
		if err != nil {
			if err == io.EOF && len(all) > 0 {
				return strings.Join(all, "\n"), nil
			}
			return "", err
		}
		before, more := strings.CutSuffix(line, `\`)
		if all = append(all, before); !more {
			return strings.Join(all, "\n"), nil
		}
	}
}

// interruptible returns a context that an interrupt ends, with lineedit.ErrInterrupt as its
// cause, and a function that stops waiting for interrupts.
func (c *Chat) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-c.cfg.Interrupts:
			cancel(lineedit.ErrInterrupt)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-over
	}
}
