package proc

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Runner starts commands. It is safe for concurrent use.
type Runner struct {
	config Config

	mu      sync.Mutex
	running map[*Process]struct{}
	closed  bool

	probe   sync.Mutex // held while self-tests run
	report  *Report
	noUnix  bool             // the supervisor cannot connect unix sockets here
	fails   map[Level]string // for tests: the check that fails
	outward egress.Config    // for tests: other names and hosts
	shared  chan struct{}    // holds one value for each connection through the proxy, except the first of each command

	tasks       sync.WaitGroup  // background work
	prestarted  []*supervisor   // waiting for the next commands
	preparing   int             // prestarted supervisors being started
	last        *supervise.Spec // the spec of the last command; the next is probably similar
	secretScans map[string]*secretScan
	guards      *writeguard.Guards
	home        map[string]*folder
	several     map[fileID]bool    // hidden files with several links, as of the last command
	stores      map[string]*folder // directories of credential stores
	homes       func() []string
	paths       searchPaths

	run        runDir
	temps      []privateTemp   // prepared for the next commands
	reports    bool            // the last command had a prologue
	passed     func() []string // variables of Config.Environ that commands get
	cachesMade map[string]bool // by directories
}

// New returns a runner. It starts no process and accesses no file. It returns
// the error of Config.Validate.
func New(c Config) (*Runner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.complete()
	return newRunner(c), nil
}

func newRunner(c Config) *Runner {
	r := &Runner{
		config: c, running: map[*Process]struct{}{}, secretScans: map[string]*secretScan{}, guards: writeguard.New(c.WatchDir), home: map[string]*folder{},
		stores: map[string]*folder{}, homes: sync.OnceValue(func() []string { return sandbox.Homes(c.getenv) }),
		passed: sync.OnceValue(func() []string { return Environ{PassSecrets: c.PassSecrets}.filter(c.Environ) }),
	}
	if c.Connections > 0 {
		r.shared = make(chan struct{}, c.Connections)
	}
	return r
}

// Abort is Close without the grace: all commands are killed at once.
func (r *Runner) Abort() error {
	r.mu.Lock()
	r.closed = true
	for p := range r.running {
		p.abortOnce.Do(func() { close(p.abort) })
	}
	r.mu.Unlock()
	return r.Close()
}

// Close ends all commands, waits until they have ended, and refuses new ones.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	var all []*Process
	for p := range r.running {
		all = append(all, p)
	}
	r.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
	for _, p := range all {
		<-p.done
	}
	r.mu.Lock()
	prestarted := r.prestarted
	r.prestarted = nil
	r.mu.Unlock()
	for _, super := range prestarted {
		super.abandon()
	}
	r.tasks.Wait()
	r.releaseHidden()
	r.endRun()
	r.guards.Close()
	return nil
}

// Start starts a command. Cancelling ctx ends the command, and Process.Wait
// returns its result. The error is SANDBOX_UNAVAILABLE if this machine does
// not enforce the level, EXECUTION_ERROR if bash cannot be started.
func (r *Runner) Start(ctx context.Context, c Command) (*Process, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	level, err := r.level(ctx)
	if err == nil {
		err = r.config.checkEgress(level)
	}
	if err == nil {
		err = r.checkSockets(level)
	}
	if err != nil {
		return nil, err
	}
	return r.start(ctx, c, level, nil)
}

// start starts c at a level. argv replaces bash for the self-test.
func (r *Runner) start(ctx context.Context, c Command, level Level, argv []string) (*Process, error) {
	began := time.Now()
	if info, err := os.Stat(c.Dir); len(c.Layers) == 0 && (err != nil || !info.IsDir()) { // it may exist in a layer only
		return nil, toolerr.New(toolerr.NotFound, "working directory %s is not a directory that exists", pathname.Escape(c.Dir))
	}
	if level != Off && c.Rules == nil {
		return nil, toolerr.New(toolerr.NoRoot, "no root is known that a confined command could use: give one with --root DIR")
	}
	if len(c.Layers) > 0 && level != L2 {
		return nil, toolerr.New(toolerr.SandboxUnavailable, "changes cannot be kept apart: that needs overlayfs in namespaces (level L2; here it is %s). Instead start the server on a copy: cp -a --reflink=auto DIR COPY", level)
	}
	temp, err := r.makeTemp()
	if toolerr.CodeOf(err) == toolerr.Cancelled {
		return nil, err
	}
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "no private temporary directory can be made: %w", err)
	}
	for m := new(moving); ; {
		p, s, err := r.tryStart(ctx, c, level, argv, temp, m, began)
		if moved := (*movedError)(nil); errors.As(err, &moved) {
			if err = m.moved(s, moved.path); err == nil {
				continue
			}
		}
		if err != nil {
			temp.remove()
			return nil, err
		}
		return p, nil
	}
}

// tryStart makes one attempt to start the command. It returns a *movedError if
// a hidden file was moved meanwhile.
func (r *Runner) tryStart(ctx context.Context, c Command, level Level, argv []string, temp privateTemp, m *moving, began time.Time) (*Process, *spec, error) {
	s, err := r.spec(c, level, temp, m)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	if argv != nil {
		s.Argv, s.Probe = argv, true
	} else {
		r.planUndo(s, c)
	}
	guard := &writeguard.Command{}
	if level != Off {
		guard = r.guardRoots(s, c.Rules)
	}
	p, err := r.launch(ctx, c, s, temp, guard, began)
	if err != nil {
		guard.End()
	}
	return p, s, err
}

// movedError reports that a hidden file is no longer at the path that the spec
// names.
type movedError struct{ path string }

func (e *movedError) Error() string { return e.path + " is moved meanwhile" }

// spec returns the supervisor's instructions for c.
func (r *Runner) spec(c Command, level Level, temp privateTemp, m *moving) (_ *spec, err error) {
	s := &spec{Spec: supervise.Spec{
		Level: level, Network: r.config.Network, Dir: c.Dir, Mark: rand.Text(),
		Limits: r.config.Limits, GraceMS: r.config.Grace.Milliseconds(), WaitMS: r.config.Linger.Milliseconds(),
		Writable: r.config.Writable, Temp: temp.path, Layers: c.Layers, NoUnix: r.noUnix,
	}, spillDir: cmp.Or(c.SpillDir, r.config.SpillDir)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if level != Off {
		for _, root := range c.Rules.Roots() {
			s.Roots = append(s.Roots, supervise.Root(root))
		}
		s.Sockets = r.sockets(level)
		if err := r.findHidden(s, c.Rules, m); err != nil {
			return nil, err
		}
	}
	cacheDir, caches, err := r.caches(s.Roots)
	if err != nil {
		return nil, err
	}
	if len(caches) > 0 {
		s.Writable = append(slices.Clone(s.Writable), cacheDir)
	}
	inside := temp.inside(s.Covered("/tmp"), level)
	environ := Environ{
		Base: r.passed(), filtered: true, known: &r.paths, Extra: c.Env, PassSecrets: r.config.PassSecrets,
		Set: []string{"TMPDIR=" + inside, "PWD=" + c.Dir, supervise.MarkName + "=" + s.Mark},
	}
	before, err := s.addPrologue(c, inside)
	if err != nil {
		return nil, err
	}
	environ.Set = append(environ.Set, before...)
	if err := r.linkEgress(s, &environ); err != nil {
		return nil, err
	}
	for _, root := range s.Roots {
		if !root.ReadOnly {
			environ.Writable = append(environ.Writable, root.Path)
		}
	}
	environ.Base = withCaches(environ.Base, caches, slices.Concat(environ.Writable, r.config.Writable))
	s.Env, s.refused = environ.Build()
	bash, err := findBash(s.Env)
	if err != nil {
		return nil, err
	}
	s.Argv = []string{bash, "--noprofile", "--norc", "-c", c.Script}
	return s, nil
}

// findBash finds bash in the command's own PATH.
func findBash(env []string) (string, error) {
	for _, pair := range env {
		if path, ok := cutPrefix(pair, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if name, err := exec.LookPath(filepath.Join(dir, "bash")); err == nil {
					return name, nil
				}
			}
		}
	}
	return "", toolerr.New(toolerr.ExecutionError, "bash is not in the search path: install it, or start the server with a PATH that has it")
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

// launch starts the supervisor, sends it the spec, and waits until bash runs.
func (r *Runner) launch(ctx context.Context, c Command, s *spec, temp privateTemp, guard *writeguard.Command, began time.Time) (*Process, error) {
	stdin, stdinEnd, err := openStdin(c)
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "standard input cannot be made: %w", err)
	}
	defer stdin.Close()
	output, write, err := outputPipe()
	if err != nil {
		closeAll(stdinEnd)
		return nil, toolerr.New(toolerr.ExecutionError, "the pipe for the output cannot be made: %w", err)
	}
	defer write.Close()
	super, reports, err := r.engage(ctx, s, s.files(c, stdin, write))
	if err != nil {
		closeAll(stdinEnd, output)
		return nil, err
	}
	super.output = output
	proxy, err := r.openEgress(s.link)
	if err != nil {
		super.abandon()
		closeAll(stdinEnd)
		return nil, err
	}
	p := &Process{
		undo: s.Undo, runner: r, super: super, stdin: stdinEnd, temp: temp, mark: s.Mark, guard: guard, proxy: proxy, began: began, grace: r.config.Grace,
		out: newOutput(s.spillDir, r.config.SpillBytes), done: make(chan struct{}),
		env: s.Env, kill: make(chan struct{}), abort: make(chan struct{}), result: Result{Ending: Exited, ExitCode: -1, Level: s.Level, Refused: s.refused, Gaps: s.gaps, Protected: s.protected()},
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		super.abandon()
		closeAll(stdinEnd)
		p.endEgress()
		return nil, errEnding()
	}
	r.running[p], r.last, r.reports = struct{}{}, &s.Spec, c.Prologue != nil
	r.mu.Unlock()
	p.watch(ctx, c, reports)
	return p, nil
}

func errEnding() error { return toolerr.New(toolerr.Cancelled, "the server is ending") }

// lostError reports that a supervisor ended before it started the command.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return "the supervisor of the command ended early: " + e.cause.Error()
}
func (e *lostError) Unwrap() error { return e.cause }

// startLimit bounds the time to start a command. Without it, a file system
// that does not answer would block for ever.
const startLimit = time.Minute

// handshake sends the spec and receives whether bash was started. ctx and
// startLimit apply until the supervisor is ready to start bash. After that the
// command counts as started, even if it has ended already, and the supervisor
// with it.
func (super *supervisor) handshake(ctx context.Context, s *spec, files []*os.File, reports *bufio.Reader) error {
	var mu sync.Mutex
	ready := false
	super.control.SetDeadline(time.Now().Add(startLimit))
	defer super.control.SetDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ready {
			super.control.SetDeadline(time.Now())
		}
	})()
	first, err := super.exchange(s, files, reports)
	mu.Lock()
	ready = first.Ready
	mu.Unlock()
	if ready {
		super.control.SetDeadline(time.Now().Add(startLimit))
		if supervise.Read(reports, &first) != nil {
			return nil
		}
		super.ahead = first.Ahead
	}
	switch {
	case err == nil:
		return failure(first, s)
	case ctx.Err() != nil:
		return toolerr.New(toolerr.Cancelled, "the command was cancelled before it was started: %w", ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return toolerr.New(toolerr.Timeout, "the command was not started within %v: a file system that it needs may not answer", startLimit)
	}
	return toolerr.New(toolerr.ExecutionError, "%w", &lostError{err})
}

// exchange sends the spec and the files, and returns the first report.
func (super *supervisor) exchange(s *spec, files []*os.File, reports *bufio.Reader) (first report, err error) {
	if err = super.pass(supervise.Append(nil, s.Since(super.expected)), files); err == nil {
		err = supervise.Read(reports, &first)
	}
	return first, err
}

// failure returns the error of a report that bash was not started, nil for
// other reports.
func failure(r report, s *spec) error {
	if r.Error == "" {
		return nil
	}
	if r.Moved != "" {
		return &movedError{r.Moved}
	}
	code := toolerr.ExecutionError
	if s.Level != Off && !r.Program {
		code = toolerr.SandboxUnavailable
	}
	return toolerr.New(code, "the command was not started: %s", r.Error)
}

// openStdin returns the command's standard input, and the end of the pipe to
// write to. write is nil if the command has no input.
func openStdin(c Command) (read, write *os.File, err error) {
	if len(c.Stdin) == 0 && !c.KeepStdin {
		read, err = os.Open(os.DevNull)
		return read, nil, err
	}
	return os.Pipe()
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Init must be called first in main. In the process that the self-test starts,
// it runs the probe and does not return.
func Init() {
	if len(os.Args) >= 3 && os.Args[1] == supervise.RoleArg {
		// os.Exit sleeps one second in a program built with -race.
		syscall.Exit(runRole(os.Args[2]))
	}
}

// hint returns the likely reason why this user cannot make namespaces, "" if
// it knows none.
func hint(level Level, err error) string {
	switch {
	case level != L2:
	case errors.Is(err, syscall.ENOSPC):
		return " (there may be no more user name spaces: see the sysctl user.max_user_namespaces)"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return " (this system or container does not let users make name spaces)"
	}
	return ""
}
