package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/state"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// grace is how long after TERM comes KILL. With it, a command that is ended is
// answered within two seconds, also where the machine is busy.
const grace = 1750 * time.Millisecond

// shell holds what calls share.
type shell struct {
	config Config
	hidden []string // directories that commands see nothing of
	box    *sandbox.Sandbox
	store  *state.Store
	policy *policy.Policy
	runner func() (*proc.Runner, error) // made by the first command

	turns    chan struct{} // of commands that are waited for
	sessions sessions
	jobs     jobs
	watch    watch

	trims   sync.WaitGroup // of the caches
	endTrim context.CancelFunc

	mu      sync.Mutex
	made    *proc.Runner
	stopped bool // the server was told to stop at once
}

func newShell(box sandbox.Config, kept state.Config, own Config) (*shell, error) {
	if err := errors.Join(box.Validate(), kept.Validate(), own.Validate()); err != nil {
		return nil, err
	}
	box.ClientRoots = mcpkit.ClientRoots
	if dir := kept.Directory(); dir != "" {
		box.Protect = append(box.Protect, dir)
	}
	if dir := kept.Spilled(); dir != "" {
		box.Readable = append(box.Readable, dir)
	}
	own.Policy.Network = own.open()
	rules, err := policy.New(own.Policy)
	if err != nil {
		return nil, err
	}
	// What is let in by what is in there, approved and written down is not for commands.
	s := &shell{config: own, hidden: slices.Concat(kept.Directories(), own.Hidden), box: sandbox.New(box), store: state.New(kept), policy: rules}
	s.watch.store = s.store
	s.turns = make(chan struct{}, turnsFor(descriptorsAllowed()))
	s.runner = sync.OnceValues(s.newRunner)
	return s, nil
}

// turnsFor is how many commands are waited for at once: as many as calls are
// taken, or fewer where each, and all jobs besides, would run out of
// descriptors.
func turnsFor(descriptors uint64) int {
	const own, aJob, aCommand = 40, 5, 8
	left := int64(min(descriptors, 1<<20)) - own - maxJobs*aJob
	return int(min(max(left/aCommand, 4), maxConcurrent))
}

// connectionsFor is how many connections to allowed hosts all commands share. Each takes
// two descriptors, and what holds many is not to keep other commands from starting.
func connectionsFor(descriptors uint64) int { return int(min(max(descriptors/8, 4), 4096)) }

// newRunner makes what starts commands. Without a state directory there is no
// file for long outputs, and caches are not kept.
func (s *shell) newRunner() (*proc.Runner, error) {
	c := proc.Config{
		Level: s.config.Level, Network: s.config.Network.On, Egress: s.config.Network.Allow, Limits: s.config.Limits,
		PassSecrets: s.config.PassSecrets, SpillBytes: s.config.SpillBytes, Grace: grace, Hidden: s.hidden,
		Connections: connectionsFor(descriptorsAllowed()),
	}
	if dir, err := s.store.Spill(); err == nil {
		c.SpillDir = dir
	}
	s.keepCaches(&c)
	runner, err := proc.New(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = runner
	return runner, err
}

// close ends the jobs: with a grace where the input has ended, at once where
// the server was told to stop.
func (s *shell) close() error {
	s.mu.Lock()
	runner, stopped := s.made, s.stopped
	s.mu.Unlock()
	if runner == nil {
		return nil
	}
	if s.endTrim != nil {
		s.endTrim()
		s.trims.Wait()
	}
	defer s.jobs.close()
	if stopped {
		return runner.Abort()
	}
	return runner.Close()
}

// stop remembers that the server has no time.
func (s *shell) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// filter is what session variables pass on their way to the next command.
func (s *shell) filter(fs *sandbox.FS) proc.Environ {
	e := proc.Environ{Base: nil, PassSecrets: s.config.PassSecrets}
	for _, root := range fs.Roots() {
		if !root.ReadOnly {
			e.Writable = append(e.Writable, root.Path)
		}
	}
	return e
}

// permit judges a command, asking the user where a rule says so.
func (s *shell) permit(ctx context.Context, command string) (policy.Verdict, error) {
	verdict := s.policy.Check(command)
	if err := verdict.Err(); err != nil || verdict.Decision != policy.Ask {
		return verdict, err
	}
	agreed, asked, err := mcpkit.Confirm(ctx, "Run this command?\n\n"+shorten(safe(command).text, 2000)+"\n\n"+verdict.Message)
	switch {
	case ctx.Err() != nil:
		return verdict, ctx.Err()
	case agreed:
		return verdict, nil
	case err != nil:
		return verdict, denied(verdict, "The user could not be asked: "+err.Error()+".")
	case asked:
		return verdict, denied(verdict, "The user was asked and did not agree: do not try it in another way.")
	}
	return verdict, denied(verdict, "This client cannot ask the user. Tell the user what it is for, so that they run it themselves or start the server without the rule.")
}

func denied(verdict policy.Verdict, why string) error {
	return toolerr.New(toolerr.CommandDenied, "%s %s", verdict.Message, why).With("policy", verdict.Metadata())
}

// call is the tool bash.
func (s *shell) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	fs, err := s.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	verdict, err := s.permit(ctx, args.Command)
	if err != nil {
		return nil, err
	}
	runner, err := s.runner()
	if err != nil {
		return nil, err
	}
	report, err := runner.SelfTest(ctx)
	if err != nil {
		return nil, err
	}
	// A call that comes without a protocol is the only one: nobody could look
	// after a job.
	alone := mcpkit.RawParams(ctx) == nil
	if alone && args.Background {
		mcpkit.Notef(ctx, "a single call waits for the end: there would be nobody to look after a job")
		args.Background = false
	}
	if args.Background && s.jobs.full() {
		return nil, s.jobs.fullError()
	}
	begin, err := s.sessions.begin(fs, args)
	if err != nil {
		return nil, err
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.watch.begin(fs)
	timeout := time.Duration(args.Timeout) * time.Millisecond
	if timeout == 0 && !args.Background {
		timeout = 120 * time.Second
	}
	process, err := runner.Start(context.WithoutCancel(ctx), proc.Command{
		Script: args.Command, Dir: begin.dir, Env: begin.env, Rules: withHome(fs, report.Level), Timeout: timeout,
		Prologue: func(report string) string { return prologue(report, args.Command, begin.unset) },
		Stdin:    []byte(args.Stdin), KeepStdin: args.Background,
	})
	if err != nil {
		return nil, err
	}
	r := &running{
		shell: s, fs: fs, args: args, verdict: verdict, report: report, begin: begin,
		process: process, output: process.Output(), started: time.Now(), timeout: timeout,
	}
	patience := time.Duration(args.Patience) * time.Millisecond
	switch {
	case args.Background:
		patience = startup
	case alone:
		patience = deadline
	}
	return r.attend(ctx, patience)
}

// stopping reports whether ctx ended because the server is to end at once.
func stopping(ctx context.Context) bool { return errors.Is(context.Cause(ctx), mcpkit.ErrStopped) }

// saveWhole writes an output that was cut but is in memory still to a file of
// its own, so that each cut output has one.
func (s *shell) saveWhole(o *proc.Output) (string, error) {
	dir, err := s.store.Spill()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "output-*.txt")
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for at := int64(0); ; {
		n, skipped, err := o.Read(at, buf)
		if err != nil || n == 0 {
			return f.Name(), err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			os.Remove(f.Name())
			return "", err
		}
		at += skipped + int64(n)
	}
}
