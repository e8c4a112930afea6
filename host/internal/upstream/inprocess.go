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

// inProcess is the wire to a server that is a function of this program. It
// cannot be killed: one that does not end when its input and its context have
// is left behind after TermGrace.
type inProcess struct {
	*writer
	cfg   Config
	ours  net.Conn // our end of its input
	out   net.Conn // our end of its output
	end   context.CancelFunc
	ended chan struct{} // closed when the function has returned
	err   error         // its error
}

func newInProcess(cfg Config) *inProcess {
	theirIn, ours := net.Pipe()
	out, theirOut := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &inProcess{
		writer: newWriter(ours, cfg.WriteTimeout), cfg: cfg,
		ours: ours, out: out, end: cancel, ended: make(chan struct{}),
	}
	go func() {
		defer close(p.ended)
		defer theirOut.Close() //nolint:errcheck // of a pipe in memory
		defer theirIn.Close()  //nolint:errcheck // the same
		defer func() {
			if fault := recover(); fault != nil {
				p.err = fmt.Errorf("it panicked: %v", fault)
			}
		}()
		p.err = cfg.Serve(ctx, theirIn, theirOut)
	}()
	return p
}

// run takes messages until the function returns or c is dead, and ends it.
func (p *inProcess) run(c *conn) error {
	read := make(chan struct{})
	go func() {
		defer close(read)
		in := jsonrpc.NewReader(p.out, p.cfg.MaxLine)
		for {
			line, err := in.ReadLine()
			switch {
			case errors.Is(err, jsonrpc.ErrTooLong):
				c.tooLong(err)
			case err != nil:
				return
			case len(bytes.TrimSpace(line)) > 0:
				c.take(line)
			}
		}
	}()
	select {
	case <-read:
	case err := <-p.unread:
		select {
		case <-p.ended: // then why it did is what is to be said
		default:
			c.fail(err)
		}
	case <-c.dead:
	}
	p.ours.Close() //nolint:errcheck // of a pipe in memory
	if !p.over(p.cfg.CloseGrace) {
		p.end()
		p.over(p.cfg.TermGrace)
	}
	p.end()
	p.out.Close() //nolint:errcheck // the same
	<-read
	p.writer.close()
	p.writer.wait()
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

// over waits for the function to return.
func (p *inProcess) over(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

func (p *inProcess) describe() description { return description{} }
