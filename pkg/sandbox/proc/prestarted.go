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

// startOnSupervisor makes a waiting supervisor start the command, or a new one
// if none is waiting. The returned reader receives the supervisor's further
// reports. It returns EXECUTION_ERROR if no supervisor can be started, and the errors of
// handshake.
func (r *Runner) startOnSupervisor(ctx context.Context, s *spec, files []*os.File) (*supervisor, *bufio.Reader, error) {
	for super := r.takePrestarted(s.Level); super != nil; super = r.takePrestarted(s.Level) {
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
		if super.level == level && super.mounts == readMountTable(level) {
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
