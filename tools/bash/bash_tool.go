package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// bashTool is the state of the tools bash and bash_job: settings, policy, sessions, jobs
// and the runner of commands. All calls share it. It is safe for concurrent use.
type bashTool struct {
	config    Config
	shellName string   // bash; on Windows without bash: pwsh, powershell or cmd
	stateDirs []string // directories with the state of servers, which commands cannot see
	box       *sandbox.Sandbox
	store     *state.Store
	policy    *policy.Policy
	runner    func() (*proc.Runner, error) // returns the runner of commands, created at the first call

	commandSlots chan struct{} // holds an item for each command that a call waits for
	sessions     sessions
	jobs         jobs
	watches      viewWatches // of files that clients viewed
	review       *reviewer   // never nil
	undos        undoRecords // empty without --undo

	trims   sync.WaitGroup     // trimming of the caches
	endTrim context.CancelFunc // ends the trimming; nil: none was started

	mu            sync.Mutex
	createdRunner *proc.Runner // for close; nil: no command was run
	immediateEnd  bool         // close must not wait for the jobs

	spillRoots *sandbox.FS // the roots to which spill belongs; nil: none yet
	spill      string      // directory for whole outputs
}

// newBashTool validates the settings and returns the shared state. It starts nothing. It
// returns INVALID_PARAMS for settings that contradict each other.
func newBashTool(box sandbox.Config, kept state.Config, own Config) (*bashTool, error) {
	if err := errors.Join(box.Validate(), kept.Validate(), own.Validate()); err != nil {
		return nil, err
	}
	if own.Undo && kept.Disabled {
		return nil, toolerr.New(toolerr.InvalidParams, "--undo and --no-state cannot be combined: the changes of commands are recorded in the state directory")
	}
	box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.FindNamed
	if dir := kept.Directory(); dir != "" {
		box.Protect = append(box.Protect, dir)
	}
	box.ReadableFor = kept.OutputDir
	shellName := commandShell(runtime.GOOS, os.Environ())
	if err := checkShellRules(shellName, own.Policy); err != nil {
		return nil, err
	}
	own.Policy.Network = own.hasNetwork()
	rules, err := policy.New(own.Policy)
	if err != nil {
		return nil, err
	}
	// The state directories hold keys, approvals and records, so they are
	// hidden from commands.
	s := &bashTool{config: own, shellName: shellName, stateDirs: kept.Directories(), box: sandbox.New(box), store: state.New(kept), policy: rules}
	s.watches.store = s.store
	s.review = &reviewer{mode: own.Changes, state: s.store}
	s.sessions.isPendingDir = s.review.hasDir
	s.commandSlots = make(chan struct{}, commandSlotsFor(openFilesLimit()))
	s.runner = sync.OnceValues(s.newRunner)
	return s, nil
}

// commandSlotsFor returns the number of commands that calls may wait for at
// once: maxConcurrent, or fewer if they, with all jobs, could run out of file
// descriptors.
func commandSlotsFor(descriptors uint64) int {
	const own, aJob, aCommand = 40, 5, 8
	left := int64(min(descriptors, 1<<20)) - own - maxJobs*aJob
	return int(min(max(left/aCommand, 4), maxConcurrent))
}

// maxConnectionsFor returns the largest number of connections to allowed hosts,
// for all commands together. Each takes two file descriptors, and a command
// with many must not keep other commands from starting.
func maxConnectionsFor(descriptors uint64) int { return int(min(max(descriptors/8, 4), 4096)) }

// newRunner creates the runner of commands. Without a state directory, long
// outputs have no file, caches are not kept, and private temporary directories
// are in the system's. It returns the errors of enableUndo and proc.New.
func (s *bashTool) newRunner() (*proc.Runner, error) {
	c := proc.Config{
		Level: s.config.Level, Network: s.config.Network.On, Egress: s.config.Network.Allow, Limits: s.config.Limits,
		PassSecrets: s.config.PassSecrets, SpillBytes: s.config.SpillBytes, Grace: proc.DefaultGrace, Hidden: slices.Concat(s.stateDirs, s.config.Hidden), StateDirs: s.stateDirs, Sockets: s.config.Sockets,
		Connections: maxConnectionsFor(openFilesLimit()),
	}
	if dir, err := s.store.CommandTempsDir(); err == nil {
		c.TempDir = dir
	}
	if dir, err := s.store.HiddenPathsDir(); err == nil {
		c.RecordDir = dir
	}
	if dir, err := s.store.RootSnapshotsDir(); err == nil {
		c.WatchDir = dir
	}
	if err := s.enableUndo(&c); err != nil {
		return nil, err
	}
	s.enableCaches(&c)
	runner, err := proc.New(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.createdRunner = runner
	return runner, err
}

// close ends the jobs and background work, and waits for them. Jobs end after a
// grace period, or at once if requestImmediateEnd was called.
func (s *bashTool) close() error {
	s.mu.Lock()
	runner, stopped := s.createdRunner, s.immediateEnd
	s.mu.Unlock()
	if runner == nil {
		return nil
	}
	if s.endTrim != nil {
		s.endTrim()
		s.trims.Wait()
	}
	defer s.jobs.close()
	defer s.review.tasks.Wait()
	defer s.undos.prune.Wait()
	if stopped {
		return runner.Abort()
	}
	return runner.Close()
}

// requestImmediateEnd makes close end the jobs without a grace period. It does
// not end them itself.
func (s *bashTool) requestImmediateEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.immediateEnd = true
}

// sessionFilter returns the filter that decides which variables of a session
// the next command gets.
func (s *bashTool) sessionFilter(fsys *sandbox.FS) proc.Environ {
	e := proc.Environ{Base: nil, PassSecrets: s.config.PassSecrets}
	for _, root := range fsys.Roots() {
		if !root.ReadOnly {
			e.Writable = append(e.Writable, root.Path)
		}
	}
	return e
}

// call handles a call of bash. Among its errors are COMMAND_DENIED and TIMEOUT; a
// command that fails is no error.
func (s *bashTool) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	if err := args.translate(ctx); err != nil {
		return nil, err
	}
	verdict := s.check(args.Command)
	if err := verdict.Err(); err != nil {
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
	// A one-shot call is the only call: nobody could manage a job.
	alone := wire.RawParams(ctx) == nil
	if alone && args.Background {
		mcpkit.Notef(ctx, "run_in_background is ignored: a single call waits until the command ends")
		args.Background = false
	}
	if args.Background && s.jobs.isFull() {
		return nil, s.jobs.fullError()
	}
	begin, err := s.sessions.prepareStart(fsys, args)
	if err != nil {
		return nil, err
	}
	if verdict.Decision == policy.Ask {
		if err := askUser(ctx, verdict, commandQuestion(args, begin, verdict.Message)); err != nil {
			return nil, err
		}
	}
	select {
	case s.commandSlots <- struct{}{}:
		defer func() { <-s.commandSlots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	watch := s.watches.forSession(mcpkit.ClientSession(ctx))
	watch.skipEarlierChanges(fsys)
	timeout := time.Duration(args.Timeout) * time.Millisecond
	if timeout == 0 && !args.Background {
		timeout = defaultTimeout
	}
	layer, err := s.review.beginLayer(fsys, args.Command)
	if err != nil {
		return nil, err
	}
	process, err := runner.Start(context.WithoutCancel(ctx), proc.Command{
		Script: args.Command, Dir: begin.dir, SpillDir: s.spillDir(fsys), Env: begin.env, Rules: rulesWithHome(fsys, report.Level), Timeout: timeout,
		Prologue: func(report string) string { return prologue(report, args.Command, begin.unset) },
		Stdin:    []byte(args.Stdin), KeepStdin: args.Background, Layers: layer.layers(),
	})
	layer.endAfter(process)
	s.undos.addCommand(process)
	if err != nil {
		return nil, err
	}
	r := &runningCommand{
		tool: s, fs: fsys, watch: watch, args: args, verdict: verdict, report: report, start: begin,
		process: process, layer: layer, output: process.Output(), started: time.Now(), timeout: timeout,
	}
	handOverAfter := time.Duration(args.Patience) * time.Millisecond
	switch {
	case args.Background:
		handOverAfter = backgroundWait
	case alone:
		handOverAfter = deadline
	}
	return r.waitForEnd(ctx, handOverAfter)
}

// isServerEnd reports whether ctx ended because the server must end at once.
func isServerEnd(ctx context.Context) bool { return errors.Is(context.Cause(ctx), mcpkit.ErrStopped) }
