package upstream

import (
	"context"
	"io"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// OneShot is a program that is started for one answer.
type OneShot struct {
	Command   []string // absolute path of the program, and arguments; no shell
	Env       []string // the whole environment, NAME=value
	Dir       string   // "": the host's
	Input     []byte   // standard input
	MaxOutput int      // bytes of standard output
	Trusted   []trust.File
}

// drainTimeout is the time to wait for the output of a killed program, in case a process
// outside of its tree still holds it.
const drainTimeout = time.Second

// RunOnce runs a program in its own process group and returns its standard output, and the
// end of its standard error. When ctx ends, the program is killed. Nothing that it started
// remains when RunOnce returns.
func (s *Spawner) RunOnce(ctx context.Context, o OneShot) (output []byte, stderr string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	p, err := s.start(Config{Command: o.Command, Env: o.Env, Dir: o.Dir, Trusted: o.Trusted}, func() {})
	if err != nil {
		return nil, "", toolerr.New(toolerr.ExecutionError, "cannot start %s: %w", o.Command[0], err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		p.stdin.Write(o.Input) //nolint:errcheck // it need not read
		p.closeInput()
	}()
	read, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		output, _ = io.ReadAll(io.LimitReader(p.stdout, int64(o.MaxOutput)+1)) //nolint:errcheck // a partial output is checked as well
		if len(output) > o.MaxOutput {
			close(over)
		}
	}()
	select {
	case <-p.exited:
	case <-over:
	case <-ctx.Done():
	}
	p.group.kill() // also processes that it left behind
	<-p.exited
	s.processEnded(p)
	select {
	case <-read:
	case <-time.After(drainTimeout):
	}
	p.closeInput()
	p.closeOutput()
	<-read
	<-written
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case len(output) > o.MaxOutput:
		err = toolerr.New(toolerr.TooLarge, "it wrote more than %d MiB", o.MaxOutput>>20)
	case p.waitErr != nil:
		err = toolerr.New(toolerr.ExecutionError, "it ended with %w", p.waitErr)
	}
	return output, p.stderr.String(), err
}
