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

// engage makes a supervisor start the command: a waiting one, else a new one.
func (r *Runner) engage(ctx context.Context, s *spec, files []*os.File) (*supervisor, *bufio.Reader, error) {
	for spare := r.takeSpare(s.Level); spare != nil; spare = r.takeSpare(s.Level) {
		reports := bufio.NewReader(spare.control)
		err := spare.handshake(ctx, s, files, reports)
		if err == nil {
			return spare, reports, nil
		}
		spare.abandon()
		if lost := (*lostError)(nil); !errors.As(err, &lost) {
			return nil, nil, err
		}
	}
	super, err := spawn(s.Level, s.Network, nil)
	if err != nil {
		return nil, nil, toolerr.New(toolerr.ExecutionError, "the supervisor of the command cannot be started: %w%s", err, hint(s.Level, err))
	}
	reports := bufio.NewReader(super.control)
	if err := super.handshake(ctx, s, files, reports); err != nil {
		super.abandon()
		return nil, nil, err
	}
	return super, reports, nil
}

// takeSpare removes and returns a waiting supervisor for the level, or nil. It
// abandons unsuitable ones.
func (r *Runner) takeSpare(level Level) *supervisor {
	for {
		r.mu.Lock()
		if len(r.spares) == 0 {
			r.mu.Unlock()
			return nil
		}
		spare := r.spares[0]
		r.spares = slices.Delete(r.spares, 0, 1)
		r.mu.Unlock()
		if spare.level == level && spare.mounts == mountTable(level) {
			return spare
		}
		spare.abandon()
	}
}

// mostSpares bounds the waiting supervisors. With two, commands in quick
// succession need not wait for a new one.
const mostSpares = 2

// breather is the delay of other work after a command, so that the answer is
// sent first.
const breather = 500 * time.Microsecond

// prepare starts supervisors in advance, in the background: starting the
// program again takes most of the time of a short command. The supervisors are
// sleeping processes. The caller holds r.mu.
func (r *Runner) prepare(level Level) {
	for ; !r.closed && len(r.spares)+r.preparing < mostSpares; r.preparing++ {
		expected := r.last
		r.tasks.Go(func() {
			time.Sleep(breather)
			super, err := spawn(level, r.config.Network, expected)
			r.addTemps()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.preparing--
			switch {
			case err != nil: // the next command reports it
			case r.closed:
				super.abandon()
			default:
				r.spares = append(r.spares, super)
			}
		})
	}
}
