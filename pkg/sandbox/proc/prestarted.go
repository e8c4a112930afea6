package proc

import (
	"bufio"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// startOnSupervisor makes a waiting supervisor start the command, or the early one,
// or a new one. The returned reader receives the supervisor's further
// reports. It returns EXECUTION_ERROR if no supervisor can be started, and the errors of
// handshake.
func (r *Runner) startOnSupervisor(ctx context.Context, s *spec, files []*os.File, early *earlySupervisor) (*supervisor, *bufio.Reader, error) {
	for super := r.takeStarted(s.Level, early); super != nil; super = r.takeStarted(s.Level, early) {
		reports := bufio.NewReader(super.control)
		err := super.handshake(ctx, s, files, reports)
		if err == nil {
			return super, reports, nil
		}
		super.kill()
		if lost := (*supervisorEndedEarlyError)(nil); !errors.As(err, &lost) {
			return nil, nil, err
		}
	}
	super, err := startSupervisor(s.Level, s.Network, nil)
	if err != nil {
		return nil, nil, toolerr.New(toolerr.ExecutionError, "the supervisor of the command cannot be started: %w%s", err, namespaceHint(s.Level, err))
	}
	reports := bufio.NewReader(super.control)
	if err := super.handshake(ctx, s, files, reports); err != nil {
		super.kill()
		return nil, nil, err
	}
	return super, reports, nil
}

// earlySupervisor is a supervisor for one command that is started while the command's
// spec is made. nil is one that was not started.
type earlySupervisor struct{ started chan *supervisor } // closed without a value if the start failed

// startEarly starts a supervisor in the background, or returns nil if one is waiting.
// The caller calls discard.
func (r *Runner) startEarly(level Level) *earlySupervisor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.prestarted) > 0 {
		return nil
	}
	early := &earlySupervisor{make(chan *supervisor, 1)}
	r.background.Go(func() {
		defer close(early.started)
		if super, err := startSupervisor(level, r.config.Network, nil); err == nil { // else startOnSupervisor reports it
			early.started <- super
		}
	})
	return early
}

// take waits for the supervisor and returns it, or nil if it was taken or did not start.
func (e *earlySupervisor) take() *supervisor {
	if e == nil {
		return nil
	}
	return <-e.started
}

// discard kills the supervisor if it was not taken. It waits for its start.
func (e *earlySupervisor) discard() {
	if super := e.take(); super != nil {
		super.kill()
	}
}

// takeStarted returns a waiting supervisor for the level, else the early one, else nil.
// It kills unsuitable ones.
func (r *Runner) takeStarted(level Level, early *earlySupervisor) *supervisor {
	if super := r.takePrestarted(level); super != nil {
		return super
	}
	super := early.take()
	if super != nil && !super.isUsableFor(level) {
		super.kill()
		return nil
	}
	return super
}

// isUsableFor reports whether a command at the level can run on the supervisor: its level is
// the same, and no file system was mounted since it was started.
func (s *supervisor) isUsableFor(level Level) bool {
	return s.level == level && s.mounts == readMountTable(level)
}

// takePrestarted removes and returns a waiting supervisor for the level, or
// nil. It kills unsuitable ones.
func (r *Runner) takePrestarted(level Level) *supervisor {
	for {
		r.mu.Lock()
		if len(r.prestarted) == 0 {
			r.mu.Unlock()
			return nil
		}
		super := r.prestarted[0]
		r.prestarted = slices.Delete(r.prestarted, 0, 1)
		r.mu.Unlock()
		if super.isUsableFor(level) {
			return super
		}
		super.kill()
	}
}

// maxPrestarted bounds the waiting supervisors. With two, commands in quick
// succession need not wait for a new supervisor.
const maxPrestarted = 2

// afterAnswerDelay is the delay of background work after a command, so that its
// result is sent first.
const afterAnswerDelay = 500 * time.Microsecond

// prestartSupervisors starts supervisors for the next commands in the
// background, up to maxPrestarted: starting the program again takes most of the
// time of a short command. The supervisors are sleeping processes. The caller
// holds r.mu.
func (r *Runner) prestartSupervisors(level Level) {
	for ; !r.closed && len(r.prestarted)+r.prestarting < maxPrestarted; r.prestarting++ {
		expected := r.lastSpec
		r.background.Go(func() {
			time.Sleep(afterAnswerDelay)
			super, err := startSupervisor(level, r.config.Network, expected)
			r.prepareTemps()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.prestarting--
			switch {
			case err != nil: // the next command reports it
			case r.closed:
				super.kill()
			default:
				r.prestarted = append(r.prestarted, super)
			}
		})
	}
}
