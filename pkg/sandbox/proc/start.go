package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// start starts c at a level. argv replaces bash for the self-test; nil means bash. Its
// errors are those of Start.
func (r *Runner) start(ctx context.Context, c Command, level Level, argv []string) (*Process, error) {
	began := time.Now()
	if info, err := os.Stat(c.Dir); len(c.Layers) == 0 && (err != nil || !info.IsDir()) { // it may exist in a layer only
		return nil, toolerr.New(toolerr.NotFound, "working directory %s does not exist or is not a directory", pathname.Escape(c.Dir))
	}
	if confinesFiles(level) && c.Rules == nil {
		return nil, toolerr.New(toolerr.NoRoot, "a confined command needs a root: give one with --root DIR")
	}
	if len(c.Layers) > 0 && level != L2 {
		return nil, toolerr.New(toolerr.SandboxUnavailable, "--changes review and discard need overlayfs in namespaces (level L2; the level is %s). Instead, start the server on a copy: cp -a --reflink=auto DIR COPY", level)
	}
	temp, err := r.takeTemp()
	if toolerr.CodeOf(err) == toolerr.Cancelled {
		return nil, err
	}
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "the private temporary directory cannot be created: %w", err)
	}
	early := r.startEarly(level)
	defer early.discard()
	for moved := new(movedFiles); ; {
		p, s, err := r.tryStart(ctx, c, level, argv, temp, early, moved, began)
		if movedErr := (*movedError)(nil); errors.As(err, &movedErr) {
			if err = moved.add(s, movedErr.path); err == nil {
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
// a hidden file was moved meanwhile. The returned spec is nil only if it could
// not be made.
func (r *Runner) tryStart(ctx context.Context, c Command, level Level, argv []string, temp privateTemp, early *earlySupervisor, moved *movedFiles, began time.Time) (*Process, *spec, error) {
	s, err := r.makeSpec(c, level, temp, moved)
	if err != nil {
		return nil, nil, err
	}
	defer s.closeFiles()
	if err := r.checkStateAtL1(s); err != nil {
		return nil, s, err
	}
	if argv != nil {
		s.Argv, s.Probe = argv, true
	} else {
		r.addUndoRecord(s, c)
	}
	guard := &writeguard.Command{}
	if confinesFiles(level) {
		guard = r.guardRoots(s, c.Rules)
	}
	p, err := r.launch(ctx, c, s, temp, early, guard, began)
	if err != nil {
		guard.End()
	}
	return p, s, err
}

// movedError reports that a hidden file is no longer at the path that the spec
// names.
type movedError struct{ path string }

func (e *movedError) Error() string { return e.path + " is moved meanwhile" }

// launch starts the supervisor, sends it the spec, and waits until bash runs.
// On an error nothing runs; temp and guard are left to the caller.
func (r *Runner) launch(ctx context.Context, c Command, s *spec, temp privateTemp, early *earlySupervisor, guard *writeguard.Command, began time.Time) (*Process, error) {
	io, err := openPipes(c)
	if err != nil {
		return nil, err
	}
	defer io.closeChildEnds()
	stdinWriter, output := io.stdin, io.output
	super, reports, err := r.startOnSupervisor(ctx, s, s.filesToSend(c, io.childEnds), early)
	if err != nil {
		closeAll(stdinWriter, output)
		return nil, err
	}
	super.output = output
	proxy, err := r.startProxy(s.egress)
	if err != nil {
		super.kill()
		closeAll(stdinWriter)
		return nil, err
	}
	p := &Process{
		undoID: s.Undo, runner: r, supervisor: super, stdin: stdinWriter, temp: temp, envMark: s.Mark, guard: guard, proxy: proxy, began: began, grace: r.config.Grace,
		output: newOutput(s.spillDir, r.config.SpillBytes), done: make(chan struct{}),
		env: s.Env, kill: make(chan struct{}), abort: make(chan struct{}), result: Result{Ending: Exited, ExitCode: -1, Level: s.Level, RefusedVars: s.refusedVars, Gaps: s.gaps, Protected: s.readOnlyPaths()},
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		super.kill()
		closeAll(stdinWriter)
		p.closeProxy()
		return nil, errClosing()
	}
	r.running[p], r.lastSpec, r.lastHadPrologue = struct{}{}, &s.Spec, c.Prologue != nil
	r.mu.Unlock()
	p.monitor(ctx, c, reports)
	return p, nil
}

// namespaceHint returns a text in parentheses with the likely reason why this
// user cannot make namespaces, "" if it knows none.
func namespaceHint(level Level, err error) string {
	switch {
	case level != L2:
	case errors.Is(err, syscall.ENOSPC):
		return " (there may be no more user namespaces: see the sysctl user.max_user_namespaces)"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return " (this system or container does not let users create namespaces)"
	}
	return ""
}

// errUnavailable returns a SANDBOX_UNAVAILABLE error with the formatted text.
func errUnavailable(format string, args ...any) error {
	return toolerr.New(toolerr.SandboxUnavailable, "%s; --sandbox off runs commands without confinement", fmt.Sprintf(format, args...))
}
