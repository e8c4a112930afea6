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

// engage has a supervisor start the command: the one that waits, else a new
// one.
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

// takeSpare returns a supervisor that waits and fits, nil if there is none.
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

// mostSpares is how many supervisors wait. With a second one, commands that
// follow each other at once need not wait for the next to be started.
const mostSpares = 2

// breather is how long after a command other work waits: the answer comes first.
const breather = 500 * time.Microsecond

// prepare starts supervisors ahead, in the background, since starting the
// program again is most of what a short command costs. They are processes that
// sleep. r.mu is held.
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
			case err != nil: // the next command will say so
			case r.closed:
				super.abandon()
			default:
				r.spares = append(r.spares, super)
			}
		})
	}
}
