package upstream

import (
	"bytes"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// stdio is the wire to a program of this machine: one message a line on its
// standard input and output.
type stdio struct {
	*writer
	cfg     Config
	proc    *process
	spawner *Spawner
}

// startStdio starts a server's program.
func startStdio(cfg Config, spawner *Spawner) (*stdio, error) {
	p, err := spawner.start(cfg)
	if err != nil {
		return nil, toolerr.New(toolerr.ServerOffline, "cannot start %s: %w", cfg.Command[0], err)
	}
	return &stdio{writer: newWriter(p.stdin, cfg.WriteTimeout), cfg: cfg, proc: p, spawner: spawner}, nil
}

// run waits for the first sign of the end (the process exits, closes its
// output, or has been given up) and sees to it that process and group are
// gone. What the server wrote before its end is still taken.
func (s *stdio) run(c *conn) error {
	ended := make(chan struct{}) // stdout has been read to its end
	go func() {
		defer close(ended)
		s.read(c)
	}()
	select {
	case <-ended:
		// It usually exits at the same time; then that is the reason.
		select {
		case <-s.proc.exited:
		case <-time.After(200 * time.Millisecond):
			c.fail(s.exitError()) // before it is stopped, which may take seconds
		}
	case <-s.proc.exited:
	case err := <-s.unread:
		c.fail(err)
	case <-c.dead:
	}
	s.proc.stop(s.cfg.CloseGrace, s.cfg.TermGrace)
	// The group is dead, so the pipe ends, unless somebody who left the group
	// still holds it.
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
	s.proc.closeOutput()
	<-ended
	err := s.exitError()
	c.fail(err) // nobody has to wait for what is left of its tree
	s.spawner.ended(s.proc)
	return err
}

// A server that floods is read at a pace at which it cannot take the machine
// from the others: its pipe fills, and it waits.
const (
	noisePause = time.Millisecond     // after noiseLines that were no messages
	noiseLines = 256                  // in a row
	errPause   = 2 * time.Millisecond // after errBytes on standard error
	errBytes   = 256 << 10
)

// read takes messages until the server's output ends. What cannot be one is
// counted without being looked at closely.
func (s *stdio) read(c *conn) {
	in := jsonrpc.NewReader(s.proc.stdout, s.cfg.MaxLine)
	noise := 0
	for {
		line, err := in.ReadLine()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			c.tooLong(err)
		case err != nil:
			return
		default:
			line = bytes.TrimLeft(line, " \t")
			switch {
			case len(line) == 0:
			case line[0] == '{':
				c.take(line)
				noise = 0
				continue
			default:
				c.noise.Add(1)
			}
		}
		if noise++; noise%noiseLines == 0 {
			time.Sleep(noisePause)
		}
	}
}

// exitError says how the process ended.
func (s *stdio) exitError() error {
	text := s.proc.exitText()
	if line := lastLine(s.proc.stderr.String()); line != "" {
		text += "; its last words: " + line
	}
	return toolerr.New(toolerr.ServerOffline, "the server %s", text)
}

func (s *stdio) describe() description {
	return description{pid: s.proc.pid(), stderr: s.proc.stderr.String()}
}
