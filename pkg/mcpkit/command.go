package mcpkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"golang.org/x/term"
)

// Exit codes of a Command.
const (
	ExitOK    = 0 // the input ended, a signal stopped the server, or the call succeeded
	ExitFail  = 1 // the call failed, or the server stopped because of an error
	ExitUsage = 2 // the command line is wrong
)

// maxInstructions bounds the instructions in bytes, since every client's model
// reads them.
const maxInstructions = 1 << 10

// A Command is a program that serves tools. It has a command line and three
// modes: it serves MCP on stdin and stdout, makes one call and exits, or prints
// the tools' definitions. Make it with NewCommand, fill in the fields, register
// further flags on Flags, and call Main.
type Command struct {
	Name         string // name of the first tool; the program is called mcp-NAME
	Title        string // the server's name for people
	Instructions string // for the model, at most 1 KiB, the most important facts first
	Source       string // text of main.go; its package comment is the manual

	Flags *flag.FlagSet // flags of the program; Main parses them

	// Positional receives the arguments that are not flags, before Tools is
	// called. If it is nil, the program accepts none.
	Positional func(args []string)

	// CheckPositional returns an error for positional arguments that cannot be
	// used, such as a missing directory. The command then exits instead of
	// starting a server; a call with --call reports them as JSON. nil accepts
	// all.
	CheckPositional func(args []string) error

	Roots func() []string         // root directories, for the instructions; nil: unknown
	Tools func() ([]*Tool, error) // makes the tools to serve, after the flags are parsed; at least one

	// File names the argument of the first tool that a positional argument sets
	// if it is a file: mcp-view main.go shows that file. "" disables this.
	File string

	// Alternative, unless nil, runs an action other than serving, such as a
	// check of the machine, if a flag asks for it. done reports that it ran;
	// the program then exits with code. It is called after Tools.
	Alternative func(ctx context.Context, stdout io.Writer) (code int, done bool)

	// Middleware wraps each call, the first outermost, inside the timeout, the
	// limit of concurrent calls and the handling of panics.
	Middleware    []Middleware
	MaxConcurrent int // calls running at once, over all tools; 0: wire.DefaultMaxConcurrent

	// Memory, in bytes, suits tools that keep little between calls. Below it,
	// garbage is collected a quarter as often as by default; above it, as often
	// as needed. With 0, or with GOGC in the environment, Go's default holds.
	// Listing 15 000 files is a third faster with it.
	Memory int64

	common commonFlags // values of the flags that every Command has
}

// commonFlags holds the values of the flags that every Command has.
type commonFlags struct {
	call       string // arguments of --call; see isCallGiven
	schema     schemaFlag
	version    bool
	structured bool
	text       bool
	maxTokens  tokenFlag
	logLevel   levelFlag
}

// NewCommand returns a command with the flags that every Command has.
// mainSource is the text of main.go (go:embed), whose package comment is the
// manual.
func NewCommand(name, title, mainSource string) *Command {
	c := &Command{Name: name, Title: title, Source: mainSource}
	c.Flags = flag.NewFlagSet(c.program(), flag.ContinueOnError)
	c.common.logLevel.level = slog.LevelWarn
	c.addFlags()
	return c
}

// program returns the program's name: mcp- and the name of the first tool.
func (c *Command) program() string { return "mcp-" + c.Name }

// Main runs the command with the process's arguments and streams, and returns
// the exit code for os.Exit. It writes the protocol to the real standard output
// and points os.Stdout at standard error, so that a stray print cannot break
// the protocol.
func (c *Command) Main() (exitCode int) {
	if c.Memory > 0 && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(c.Memory)
	}
	stdout := os.Stdout
	os.Stdout = os.Stderr
	ctx, release := wire.Lifetime(context.Background(), stdout)
	defer release()
	return c.Run(ctx, os.Args[1:], os.Stdin, stdout, os.Stderr)
}

// Run is Main with explicit arguments and streams. It also returns when ctx
// ends. It sets slog's default logger.
func (c *Command) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	plain, err := parseInterspersed(c.Flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c.exitCodeAfterPrint(stderr, c.printHelp(stdout))
	case err == nil && len(plain) > 0 && c.Positional == nil:
		err = fmt.Errorf("unexpected argument %q", plain[0])
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\nRun '%s --help' for the manual.\n", c.program(), err, c.program())
		return ExitUsage
	}
	slog.SetDefault(slog.New(&logHandler{w: stderr, program: c.program(), level: c.common.logLevel.level, mu: new(sync.Mutex)}))
	if c.common.version {
		_, err := fmt.Fprintln(stdout, buildinfo.Of(c.program()))
		return c.exitCodeAfterPrint(stderr, err)
	}
	file := ""
	if !isCallGiven(c.Flags) && !c.common.schema.isSet() {
		if file, plain, err = c.splitFileArgument(plain); err != nil {
			fmt.Fprintf(stderr, "%s: %v\nRun '%s --help' for the manual.\n", c.program(), err, c.program())
			return ExitUsage
		}
	}
	if len(plain) > 0 {
		c.Positional(plain)
	}
	tools, err := c.Tools()
	switch {
	case err != nil:
	case len(tools) == 0:
		err = errors.New("no tools to serve")
	case len(c.Instructions) > maxInstructions:
		err = fmt.Errorf("the instructions have %d bytes: clients cut them after %d", len(c.Instructions), maxInstructions)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", c.program(), err)
		return ExitUsage
	}
	if c.Alternative != nil {
		if code, done := c.Alternative(ctx, stdout); done {
			return code
		}
	}
	if c.common.structured {
		if tools, err = structuredTools(tools); err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", c.program(), err)
			return ExitUsage
		}
	}
	return c.runMode(ctx, newRegistry(tools...), file, stdin, stdout, stderr)
}

// exitCodeAfterPrint returns the exit code after printing to standard output.
// Unless printErr is nil, it reports that error to stderr.
func (c *Command) exitCodeAfterPrint(stderr io.Writer, printErr error) int {
	if printErr != nil {
		fmt.Fprintf(stderr, "%s: writing: %v\n", c.program(), printErr)
		return ExitFail
	}
	return ExitOK
}

// runMode prints the schema, makes one call, answers calls from the input or
// serves MCP, depending on flags and input. file is the file to show, or "".
func (c *Command) runMode(ctx context.Context, tools *registry, file string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	if c.common.schema.isSet() {
		return c.exitCodeAfterPrint(stderr, c.printSchema(stdout, tools))
	}
	shot := &oneShot{
		runner: c.newRunner(tools), structured: c.common.structured, text: c.common.text || file != "",
		stdout: stdout, stderr: stderr, program: c.program(),
	}
	if file != "" {
		return c.callExitCode(stderr, shot.answerJSON(ctx, objectNode([]jsonMember{{c.File, stringNode(file)}}).raw))
	}
	if isCallGiven(c.Flags) {
		return c.callExitCode(stderr, shot.answerCallFlag(ctx, c.common.call, stdin))
	}
	if f, ok := stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(stderr, "%s: waiting for an MCP client on standard input, or for one call as JSON, "+
			"such as {} and Enter; end with Ctrl-D; run '%s --help' for the manual\n", c.program(), c.program())
		shot.interactive = true
	}
	in, mode := detectMode(ctx, wire.PollableReader(stdin), shot.interactive)
	if mode == modeOneShot {
		return c.callExitCode(stderr, shot.answerStream(ctx, in))
	}
	return c.serve(ctx, tools, in, stdout)
}

// serve serves MCP until the input ends or ctx does.
func (c *Command) serve(ctx context.Context, tools *registry, in io.Reader, stdout io.Writer) (exitCode int) {
	s, m := newToolServer(c, c.newRunner(tools), false)
	opts := wire.ServeOptions{
		MaxConcurrent: c.MaxConcurrent, Call: s.answerToolCall,
		Logf: func(format string, args ...any) { slog.Error(fmt.Sprintf(format, args...)) },
	}
	if slog.Default().Enabled(ctx, levelTrace) {
		opts.Trace = traceMessage
	}
	err := wire.ServeStdio(ctx, m, in, stdout, opts)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, wire.ErrStopped):
		slog.Info(err.Error())
		return ExitOK
	default:
		slog.Error(err.Error())
		return ExitFail
	}
}

// Server returns an MCP server for the tools with the command's middleware, for
// use with any transport of mcp-go.
func (c *Command) Server(tools ...*Tool) *server.MCPServer {
	_, s := newToolServer(c, c.newRunner(newRegistry(tools...)), false)
	return s
}
