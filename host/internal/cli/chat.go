package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// chatFlags holds the flags of chat.
type chatFlags struct {
	servers   []string
	model     string
	prompt    string
	once      bool // a prompt is given
	temp      float64
	maxTokens int
	history   string
	session   string
	again     bool
	verbose   bool
	json      bool
}

// singleDashFlags lists the flags that may be written with one dash, as in other chat
// programs.
func singleDashFlags() []string {
	return []string{"server", "model", "prompt", "temp", "maxtokens", "history", "verbose", "continue", "session", "json"}
}

// maxPrompt bounds a prompt from standard input, in bytes.
const maxPrompt = 4 << 20

func (p *program) chatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Chat with a model that can use the tools",
		Long: `chat talks with a model that can call the host's tools. On a terminal, answers appear
as they arrive, and each call is shown on one line. If a call needs approval, chat asks
you there. Ctrl-C stops the turn, not the program; /help lists the commands.
The conversation is saved as a session; --continue resumes the last one.

With --prompt, it sends one message (with -, all of standard input) and exits after
the answer. If standard input is not a terminal, each of its lines is one message.
Standard output then has the model's text, and standard error everything else;
--json writes all of it as one object per line.

Without a model (see models in the configuration, or set OPENAI_API_KEY,
ANTHROPIC_API_KEY or GEMINI_API_KEY), each input line is a tool call: grep pattern=TODO.
Flags can have one dash: -model NAME.`,
		Example: "  mcp-host chat\n  mcp-host chat -p 'Which tests are slow, and why?'\n  mcp-host chat --server grep,view --model claude-sonnet-4-5 --continue",
		Args:    argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.once = cmd.Flags().Changed("prompt")
			var request llm.Request
			if cmd.Flags().Changed("temp") {
				request.Temperature = &f.temp
			}
			request.MaxTokens = f.maxTokens
			switch {
			case math.IsNaN(f.temp) || f.temp < 0 || f.temp > 2:
				return usageError("--temp must be between 0 and 2")
			case f.maxTokens < 0:
				return usageError("--maxtokens must not be negative")
			case f.again && f.session != "":
				return usageError("--continue cannot be combined with --session %s", chat.LastSession)
			case f.again:
				f.session = chat.LastSession
			}
			p.only = f.servers
			return p.runChat(cmd.Context(), f, request)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.servers, "server", nil, "use only the tools of the servers `NAMES` (default: all)")
	fl.StringVar(&f.model, "model", "", "the `MODEL`: NAME, PROVIDER/NAME or PROVIDER")
	fl.StringVarP(&f.prompt, "prompt", "p", "", "send `TEXT`, print the answer and exit; - reads it from standard input")
	fl.Float64Var(&f.temp, "temp", 0, "the `TEMPERATURE` (default: the model's)")
	fl.IntVar(&f.maxTokens, "maxtokens", 0, "at most `TOKENS` per answer (default: the model's)")
	fl.StringVar(&f.history, "history", "", "input history `FILE`, or off (default chat-history in the state directory)")
	fl.StringVar(&f.session, "session", "", "resume the session with that `ID`, id prefix or name")
	fl.BoolVarP(&f.again, "continue", "c", false, "resume the last session")
	fl.BoolVar(&f.verbose, "verbose", false, "show thinking, tool results, and the usage of each turn")
	fl.BoolVar(&f.json, "json", false, "print events as JSON, one per line")
	return cmd
}

// runChat runs the chat with a new host until its input ends. A terminating signal ends the
// chat; an interrupt ends only the running turn. It returns the error that ends the
// program.
func (p *program) runChat(ctx context.Context, f chatFlags, request llm.Request) error {
	var text string
	var err error
	if f.once { // then an interrupt ends the program
		if text, err = p.promptText(f.prompt); err != nil {
			return err
		}
	}
	a, err := p.open()
	if err != nil {
		return err
	}
	defer a.Close()
	p.openControlSocket(a, "chat") // agents of its calls connect through the socket
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // as in with
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	cfg := chat.Config{
		Out: p.out, Err: p.err, In: p.in, Interrupts: interrupts,
		Model: f.model, Session: f.session, Request: request, System: systemPrompt(a),
		Bounds: agent.Bounds{Turns: 50, Time: -1}, // the user watches, and can interrupt
		JSON:   f.json, Verbose: f.verbose,
	}
	p.setTerminal(&cfg)
	cfg.Host = p.chatHost(a, cfg.Terminal != nil || cfg.Typing)
	if cfg.Terminal != nil && !f.once {
		if cfg.History, err = lineedit.OpenHistory(historyFile(f.history, a.Config.State)); err != nil {
			p.logf("the input history cannot be read: %s", printable(err.Error()))
		}
	}
	if f.model == "" && f.session == "" {
		cfg.Notice = a.Models().DefaultNotice(ctx)
	}
	c, err := chat.New(ctx, cfg)
	if err != nil {
		status := exitFailed
		if toolerr.Is(err, toolerr.NoModel) {
			status = exitConnect
		}
		return withStatus(status, err)
	}
	defer c.Close()
	p.waitForTools(ctx, a, interrupts, f.json, f.once)
	a.OnNotice(c.Notice)
	if f.once {
		return chatExit(c.Once(ctx, text))
	}
	return chatExit(c.Talk(ctx))
}

// waitForToolsTimeout is the time that a chat at a terminal waits for servers before the first
// prompt.
const waitForToolsTimeout = 5 * time.Second

// waitForTools lists the tools before a chat begins and shows the progress, because
// the first turn would otherwise wait without it. An interrupt ends the wait; the
// servers continue to start.
func (p *program) waitForTools(ctx context.Context, a *core.App, interrupts <-chan os.Signal, asJSON, oneTurn bool) {
	if p.line == nil || asJSON {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !oneTurn {
		defer time.AfterFunc(waitForToolsTimeout, cancel).Stop()
	}
	what := waitingText(a)
	defer p.showWaiting(false, func() string {
		text := what()
		if text != "" {
			text += "; Ctrl-C continues without it"
		}
		return text
	})()
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		a.List(ctx)
	}()
	select {
	case <-listed:
	case <-interrupts:
		cancel()
		<-listed
	}
}

// chatExit returns the exit error for the error of a chat; nil: it had none. The error of a failed
// or cancelled turn was printed.
func chatExit(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, chat.ErrFailed), errors.Is(err, context.Canceled): // or a signal ended it
		return withStatus(exitFailed, errPrinted)
	}
	return withStatus(exitFailed, err)
}

// promptText returns the text of --prompt; for "-" that of standard input. An empty one is a usage
// error.
func (p *program) promptText(text string) (string, error) {
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(p.in, maxPrompt+1))
		if err != nil {
			return "", withStatus(exitFailed, fmt.Errorf("reading standard input: %w", err))
		}
		if len(raw) > maxPrompt {
			return "", usageError("standard input is longer than %d bytes", maxPrompt)
		}
		text = string(raw)
	}
	if strings.TrimSpace(text) == "" {
		return "", usageError("--prompt is empty")
	}
	return text, nil
}

// setTerminal sets the settings of a chat that depend on whether its input and output are
// terminals.
func (p *program) setTerminal(cfg *chat.Config) {
	in, ok := p.in.(*os.File)
	if !ok || !lineedit.IsTerminal(in) {
		return
	}
	cfg.Typing = true
	out, ok := p.out.(*os.File)
	if !ok || !lineedit.IsTerminal(out) || cfg.JSON || p.getenv("TERM") == "dumb" {
		return
	}
	cfg.Terminal = lineedit.TerminalFile{In: in, Out: out}
	cfg.Styled = p.getenv("NO_COLOR") == ""
}

// historyFile returns the path of the file with typed messages; "": none. flag is a file, "off",
// or "" for one in the state directory.
func historyFile(flag, stateDir string) string {
	switch {
	case flag == "off" || flag == "" && stateDir == "":
		return ""
	case flag != "":
		return flag
	}
	return filepath.Join(stateDir, "chat-history")
}

// systemPrompt returns the system prompt of a chat, which names the roots.
func systemPrompt(a *core.App) string {
	where := strings.Join(a.Config.Roots, ", ")
	if where == "" {
		where, _ = os.Getwd() //nolint:errcheck // without it, the tools name their roots
	}
	return "You help a user at a terminal. Your tools work on the user's machine; find out with them what you do not know instead of guessing, " +
		"and say what you changed. Be brief, and write Markdown. The files are in " + where + "."
}

// chatHost returns the host's functions for a chat. attended says that a user can answer questions.
func (p *program) chatHost(a *core.App, attended bool) chat.Host {
	caller := call.Caller{EntryPoint: "cli", ID: "chat"}
	if attended {
		caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	h := chat.Host{
		Models:   a.Models(),
		Turn:     func(ask call.Ask) chat.Tools { return a.Toolset(caller, ask) },
		Tools:    a.List,
		Sessions: a.Sessions(),
		Servers: func() []upstream.Status {
			var all []upstream.Status
			for _, s := range a.Servers() {
				all = append(all, core.Status(s))
			}
			return all
		},
		Approve: func(ctx context.Context, id string, ok bool, args json.RawMessage) error {
			_, err := a.Decide(ctx, id, approve.Decision{Approve: ok, Args: args, By: "the user at the chat", Once: true})
			return err
		},
	}
	if a.Config.State != "" {
		journal := state.New(state.Config{Dir: a.Config.State})
		h.Changes = func(since time.Time) []*state.Change { return journal.Changes(since) }
	}
	return h
}

// keepOnlyServers removes from cfg all declared tools, and all servers except those with these names.
// It returns an error for an unknown name.
func keepOnlyServers(cfg *config.Config, names []string) error {
	var have []string
	for _, s := range cfg.Servers {
		have = append(have, s.Name)
	}
	for _, s := range cfg.Remote {
		have = append(have, s.Name)
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			return fmt.Errorf("--server: no server %q; available: %s (for an unconfigured server use --mcpservers COMMAND)", name, strings.Join(have, ", "))
		}
	}
	cfg.Servers = slices.DeleteFunc(cfg.Servers, func(s config.Server) bool { return !slices.Contains(names, s.Name) })
	cfg.Remote = slices.DeleteFunc(cfg.Remote, func(s dialect.Server) bool { return !slices.Contains(names, s.Name) })
	cfg.Declared = nil
	return nil
}
