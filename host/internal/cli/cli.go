// Package cli is the command line of mcp-host: it parses flags, calls the other
// packages, and is the only package that prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// The exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1 // the tool or the check failed
	exitUsage   = 2
	exitConnect = 3 // a server or model could not be reached
)

// exitError is an error with the exit status of the program. With an empty text, the
// error was printed already.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// withStatus returns err as an exit error, which causes this exit status.
func withStatus(status int, err error) error { return &exitError{status, err} }

// usageError returns an exit error for a wrong use of the command.
func usageError(format string, args ...any) error {
	return withStatus(exitUsage, fmt.Errorf(format, args...))
}

// errPrinted is the error of a command that has already printed the reason.
var errPrinted = errors.New("")

// program is one run of the command line.
type program struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	environ  []string
	flags    config.Flags
	share    bool        // --share
	noShare  bool        // --no-share
	only     []string    // names of the only servers to use; nil: all
	serves   bool        // the command serves MCP, so it can be a server of another host
	line     *statusLine // status line of standard error; nil: not a terminal

	log *slog.Logger // log for notices in JSON; nil: notices are text

	notices func(text string) // receives notices about the configuration; nil: standard error
	trial   bool              // the configuration is only tried: its files are not recorded as used
}

// Main runs the command line of this process and returns its exit status.
func Main() int {
	return Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Run runs a command line without the name of the program until it ends or ctx ends, and
// returns its exit status. It prints its error on stderr.
func Run(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	p := &program{in: in, out: out, err: stderr, getenv: os.Getenv, environ: os.Environ()}
	if p.line = newStatusLine(stderr, p.getenv); p.line != nil {
		p.err = p.line
	}
	root := p.rootCommand()
	root.SetArgs(doubleDash(args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var e *exitError
	if !errors.As(err, &e) { // an error of cobra about flags and arguments
		e = &exitError{exitUsage, withAdvice(err, cmd.CommandPath()+" --help shows the usage")}
	}
	switch {
	case errors.Is(e, errPrinted):
	case p.log != nil:
		p.log.Error(strings.TrimSpace(e.Error()))
	default:
		fmt.Fprintf(stderr, "mcp-host: %s\n", printable(strings.TrimSpace(e.Error()))) //nolint:errcheck // an error cannot be shown
	}
	return e.status
}

// doubleDash replaces -mcpservers, as other hosts write it, by --mcpservers, and
// likewise the flags of singleDashFlags.
func doubleDash(args []string) []string {
	args = slices.Clone(args)
	words := []string{"mcpservers"}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "chat" {
			words = append(words, singleDashFlags()...)
		}
		name, _, _ := strings.Cut(arg, "=")
		if word, ok := strings.CutPrefix(name, "-"); ok && slices.Contains(words, word) {
			args[i] = "-" + arg
		}
	}
	return args
}

// rootCommand returns the command mcp-host with all subcommands.
func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   programName,
		Short: "One MCP server for all tool servers",
		Long: `mcp-host serves many MCP servers as one, over standard input and output
(stdio) or HTTP (serve): the bundled tools in its own directory (mcp-ls,
mcp-glob, mcp-grep, mcp-view, mcp-edit, mcp-replace, mcp-bash,
mcp-dispatch_agent) and the servers of its configuration. It starts each server
when it is first needed. To serve your own programs named mcp-NAME, add their
directory to the configuration (even if it is the directory of mcp-host):

  tool_dirs: [DIR]

Exit status: 0 success, 1 the tool or the check failed, 2 usage error, 3 a server or
model could not be reached.`,
		Example:           "  mcp-host doctor\n  mcp-host stdio --root ~/project\n  mcp-host serve --listen 127.0.0.1:8080\n  mcp-host call grep pattern=TODO",
		Version:           buildinfo.Of(programName).String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:              noArguments,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(unknownFlag)
	f := root.PersistentFlags()
	f.StringVar(&p.flags.Config, "config", "", "configuration `FILE` (default toolroom/toolroom.yaml in $XDG_CONFIG_HOME or ~/.config, if it exists)")
	f.StringArrayVar(&p.flags.Roots, "root", nil, "allow the tools access to `DIR`, or DIR:ro (read-only); repeatable (default: MCP_ROOT, CLAUDE_PROJECT_DIR, the client's roots, or the working directory)")
	f.BoolVar(&p.flags.Allow.AllowRootDir, "allow-root-dir", false, "accept a root as broad as / or the home directory")
	f.StringArrayVar(&p.flags.Allow.AllowPaths, "allow-path", nil, "allow reading files that match `GLOB` even if they look like credentials; repeatable")
	f.StringArrayVar(&p.flags.Allow.AllowWrites, "allow-write", nil, "allow writing protected files that match `GLOB`; repeatable")
	f.StringVar(&p.flags.MCPServers, "mcpservers", "", "more servers: `COMMANDS` as in \"cmd args;ENV=value cmd2\"")
	f.BoolVar(&p.share, "share", false, "share server processes with other hosts of this user, like share_servers: true")
	f.BoolVar(&p.noShare, "no-share", false, "start all servers for this host alone, like share_servers: false")
	f.StringVar(&p.flags.State, "state", "", "`DIR` for state (default MCP_STATE_DIR, $XDG_STATE_HOME/toolroom, or ~/.local/state/toolroom)")
	group := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	group("serve", "Serve MCP:", p.serveCommand(), p.stdioCommand(), p.recordCommand(), p.replayCommand())
	group("use", "Use tools and models:", p.toolsCommand(), p.callCommand(), p.chatCommand(), p.agentCommand())
	group("install", "Install:", p.installCommand(), p.uninstallCommand(), p.statusCommand())
	group("operate", "Configure and operate:", p.addCommand(), p.removeCommand(), p.configCommand(), p.doctorCommand(), p.serversCommand(), p.serviceCommand(), p.stopCommand(), p.loginCommand(), p.logoutCommand(), p.approvalsCommand(), p.statsCommand())
	root.AddCommand(p.versionCommand(), p.guardCommand(), p.residentCommand())
	addCompletion(root)
	return root
}

func (p *program) guardCommand() *cobra.Command {
	return &cobra.Command{Use: "guard", Hidden: true, Args: argumentCount(0, 0), RunE: func(*cobra.Command, []string) error {
		upstream.RunGuard(p.in)
		return nil
	}}
}

// open opens a host with the configuration of the flags and the environment. The caller
// closes it. A configuration that cannot be read is an error with exit status 2.
func (p *program) open() (*core.App, error) {
	return p.openChanged(func(cfg config.Config) config.Config { return cfg })
}

// openChanged does the same as open, with the configuration that change returns. It prints the
// notices about the configuration.
func (p *program) openChanged(change func(config.Config) config.Config) (*core.App, error) {
	dir, err := bundledtools.HostDir()
	if err != nil {
		return nil, withStatus(exitFailed, err)
	}
	cfg, err := p.loadWithoutBroken(dir)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	if err := p.checkLoop(cfg); err != nil {
		return nil, withStatus(exitFailed, err)
	}
	for _, notice := range cfg.Notices {
		if p.notices != nil {
			p.notices(notice)
			continue
		}
		p.logf("%s", notice)
	}
	if !p.trial {
		if err := cfg.Remember(); err != nil {
			p.logf("the files of the configuration cannot be recorded: %v", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, withStatus(exitFailed, err)
	}
	cfg.Guard = []string{self, "guard"}
	if len(cfg.Servers)+len(cfg.Remote)+len(cfg.Declared) == 0 {
		fmt.Fprintf(p.err, "mcp-host: no tool binaries in %s and no configured servers; run make build, or give a configuration with --config\n", dir) //nolint:errcheck
	}
	a, err := core.Open(change(cfg))
	if err != nil {
		return nil, withStatus(exitFailed, err)
	}
	a.OnNotice(func(text string) { p.logf("%s", text) })
	a.OnWait(p.noticeWait)
	if p.serves {
		a.ReportFailures()
	}
	return a, nil
}

// noticeWait says why the program does not end yet, and lets an interrupt end it.
func (p *program) noticeWait() {
	p.logf("waiting until the provider of a sign-in has renewed its tokens; if the program is ended before, a new sign-in can be necessary")
	signal.Reset(os.Interrupt)
}

// load reads the configuration. dir is the directory of the bundled tools. With an error it
// returns what could be read.
func (p *program) load(dir string) (config.Config, error) { return p.loadFlags(p.flags, dir) }

// loadWithoutBroken does the same as load, but leaves out servers with errors: a host starts
// without them. During a reload, load keeps the previous configuration instead.
func (p *program) loadWithoutBroken(dir string) (config.Config, error) {
	flags := p.flags
	flags.LeaveOut = true
	return p.loadFlags(flags, dir)
}

// loadFlags reads the configuration with the flags for sharing and with only the chosen
// servers. dir is the directory of the bundled tools. With an error it returns what could
// be read.
func (p *program) loadFlags(flags config.Flags, dir string) (config.Config, error) {
	if p.share || p.noShare {
		on := p.share && !p.noShare
		flags.Share = &on
	}
	cfg, err := config.Load(flags, dir, buildinfo.Version(), p.getenv, p.environ)
	if err == nil && len(p.only) > 0 {
		err = keepOnlyServers(&cfg, p.only)
	}
	cfg.ShareStarts = p.serves
	return cfg, err
}

// followConfig applies changes of the configuration's files until stop is called, which
// waits for a running change.
func (p *program) followConfig(ctx context.Context, a *core.App) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		load := func() (config.Config, error) {
			cfg, err := p.load(a.Config.Dir)
			if err == nil {
				cfg.Remember() //nolint:errcheck // an error was reported at the start
			}
			return cfg, err
		}
		err := a.Follow(ctx, load, config.WatchOptions{})
		if err != nil {
			p.logf("configuration changes cannot be watched: %v", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// withHost opens a host, runs f, closes the host, and returns the error of f. The first signal ends
// the context of f, the second one the program.
func (p *program) withHost(ctx context.Context, f func(ctx context.Context, a *core.App) error) error {
	return p.withChangedHost(ctx, func(cfg config.Config) config.Config { return cfg }, f)
}

// withChangedHost does the same as withHost, with the configuration that change returns. It
// returns the error of f, or that of opening the host.
func (p *program) withChangedHost(ctx context.Context, change func(config.Config) config.Config, f func(ctx context.Context, a *core.App) error) error {
	// Signals are handled only after the configuration was read: until then, for
	// example when it is a pipe without a writer, a signal ends the program.
	a, err := p.openChanged(change)
	if err != nil {
		return err
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // ignored by nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	defer stop()
	defer a.Close()
	// A second signal ends the program, and its child processes are killed.
	defer context.AfterFunc(ctx, stop)()
	return f(ctx, a)
}

// printf writes to standard output. It returns an exit error if that fails.
func (p *program) printf(format string, args ...any) error {
	p.line.hide() // standard output can be the same terminal
	_, err := fmt.Fprintf(p.out, format, args...)
	if err != nil {
		return withStatus(exitFailed, fmt.Errorf("writing: %w", err))
	}
	return nil
}

// logf writes a line to standard error, or to the log of serve, with control characters escaped.
func (p *program) logf(format string, args ...any) {
	if p.log != nil {
		p.log.Info(fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(p.err, "mcp-host: %s\n", printable(fmt.Sprintf(format, args...))) //nolint:errcheck // an error cannot be shown
}
