package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// inProcess is the wire to a server that is a function of this program. A function
// cannot be killed: if it does not return after the end of its input and context, it
// is abandoned after TermGrace.
type inProcess struct {
	*writer
	cfg    Config
	input  net.Conn // our end of its input
	output net.Conn // our end of its output
	cancel context.CancelFunc
	ended  chan struct{} // closed when the function has returned
	err    error         // its error
}

// newInProcess starts cfg.Serve in a goroutine and returns a connection to it. A panic of
// it is the error of the connection.
func newInProcess(cfg Config) *inProcess {
	theirIn, ours := net.Pipe()
	out, theirOut := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &inProcess{
		writer: newWriter(ours, cfg.WriteTimeout), cfg: cfg,
		input: ours, output: out, cancel: cancel, ended: make(chan struct{}),
	}
	go func() {
		defer close(p.ended)
		defer theirOut.Close() //nolint:errcheck // a pipe in memory
		defer theirIn.Close()  //nolint:errcheck // a pipe in memory
		defer func() {
			if fault := recover(); fault != nil {
				p.err = fmt.Errorf("it panicked: %v", fault)
			}
		}()
		p.err = cfg.Serve(ctx, theirIn, theirOut)
	}()
	return p
}

// run handles messages until the function returns or c is dead, and ends the function.
func (p *inProcess) run(c *conn) error {
	read := make(chan struct{})
	go func() {
		defer close(read)
		in := jsonrpc.NewReader(p.output, p.cfg.MaxLine)
		for {
			line, err := in.ReadLine()
			switch {
			case errors.Is(err, jsonrpc.ErrTooLong):
				c.failTooLong(err)
			case err != nil:
				return
			case len(bytes.TrimSpace(line)) > 0:
				c.handleLine(line)
			}
		}
	}()
	select {
	case <-read:
	case err := <-p.givenUp:
		select {
		case <-p.ended: // then its error is the reason
		default:
			c.fail(err)
		}
	case <-c.dead:
	}
	p.input.Close() //nolint:errcheck // a pipe in memory
	if !p.waitForReturn(p.cfg.CloseGrace) {
		p.cancel()
		p.waitForReturn(p.cfg.TermGrace)
	}
	p.cancel()
	p.output.Close() //nolint:errcheck // a pipe in memory
	<-read
	p.writer.close()
	p.writer.awaitIdle()
	select {
	case <-p.ended:
		if p.err != nil {
			return toolerr.New(toolerr.ServerOffline, "the server ended: %w", p.err)
		}
	default:
		return toolerr.New(toolerr.ServerOffline, "the server did not end when asked to")
	}
	return toolerr.New(toolerr.ServerOffline, "the server ended")
}

// waitForReturn waits at most d for the return of the function, and reports whether it has
// returned.
func (p *inProcess) waitForReturn(d time.Duration) (ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// describe implements wire.
func (p *inProcess) describe() wireDescription { return wireDescription{} }
