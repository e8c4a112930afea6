package upstream

import (
	"bytes"
	"errors"
	"os"
	"sync"
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

	read  chan struct{} // closed when its output has been read to its end
	ended chan struct{} // closed when nothing of it is left

	mu   sync.Mutex
	conn *conn             // whose run it is; nil before
	over bool              // there was a sign of the end
	wide map[*os.File]bool // its pipes that large messages went through
}

// startStdio starts a server's program.
func startStdio(cfg Config, spawner *Spawner) (*stdio, error) {
	s := &stdio{cfg: cfg, spawner: spawner, read: make(chan struct{}), ended: make(chan struct{})}
	p, err := spawner.start(cfg, s.end)
	if err != nil {
		return nil, toolerr.New(toolerr.ServerOffline, "cannot start %s: %w", cfg.Command[0], err)
	}
	s.proc, s.writer = p, newWriter(p.stdin, cfg.WriteTimeout)
	s.onFail = s.end
	return s, nil
}

// run takes messages until the server's output ends, and returns when the
// server is gone. No other goroutine waits meanwhile: there may be many
// servers, most of them idle.
func (s *stdio) run(c *conn) error {
	s.mu.Lock()
	s.conn = c
	if s.over {
		go s.finish(c)
	}
	s.mu.Unlock()
	s.messages(c)
	close(s.read)
	s.end()
	<-s.ended
	s.writer.wait()
	return s.exitError()
}

// close refuses further messages and ends the server.
func (s *stdio) close() {
	s.writer.close()
	s.end()
}

// end is told of each sign of the end: the process exits, closes its output,
// does not read its input, or is not wanted any more. The first counts.
func (s *stdio) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over && s.conn != nil {
		go s.finish(s.conn)
	}
	s.over = true
}

// send is the writer's, which a large message finds more room for.
func (s *stdio) send(line []byte) error {
	if len(line) > jsonrpc.DefaultPipeSize {
		s.widen(s.proc.stdin)
	}
	return s.writer.send(line)
}

// widen gives a pipe more room, for this message if it is under way, and those
// that follow. An idle server needs none.
func (s *stdio) widen(pipe *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.wide[pipe]; known || s.over {
		return
	}
	if s.wide == nil {
		s.wide = map[*os.File]bool{}
	}
	s.wide[pipe] = s.spawner.widen(pipe)
}

// narrow gives back what the pipes had, which are gone.
func (s *stdio) narrow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, counts := range s.wide {
		if counts {
			s.spawner.narrow()
		}
	}
}

// finish sees to it that process and group are gone. What the server wrote
// before its end is still taken.
func (s *stdio) finish(c *conn) {
	defer close(s.ended)
	select {
	case err := <-s.unread:
		c.fail(err)
	case <-s.proc.exited:
	case <-s.read:
		// It usually exits at the same time; then that is the reason.
		select {
		case <-s.proc.exited:
		case <-time.After(200 * time.Millisecond):
			c.fail(s.exitError()) // before it is stopped, which may take seconds
		}
	case <-c.dead:
	}
	s.proc.stop(s.cfg.CloseGrace, s.cfg.TermGrace)
	// The group is dead, so the pipe ends, unless somebody who left the group
	// still holds it.
	select {
	case <-s.read:
	case <-time.After(time.Second):
	}
	s.proc.closeOutput()
	<-s.read
	c.fail(s.exitError()) // nobody has to wait for what is left of its tree
	s.narrow()
	s.spawner.ended(s.proc)
}

// A server that floods is read at a pace at which it cannot take the machine
// from the others: its pipe fills, and it waits.
const (
	noisePause = time.Millisecond     // after noiseLines that were no messages
	noiseLines = 256                  // in a row
	errPause   = 2 * time.Millisecond // after errBytes on standard error
	errBytes   = 64 << 10
)

// messages takes them until the server's output ends. What cannot be one is
// counted without being looked at closely.
func (s *stdio) messages(c *conn) {
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
			if len(line) > jsonrpc.DefaultPipeSize {
				s.widen(s.proc.stdout)
			}
			line = bytes.TrimLeft(line, " \t")
			switch {
			case len(line) == 0:
			case line[0] == '{', isBatch(line):
				c.take(line)
				noise = 0
				continue
			default:
				c.strayed(line)
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
	if line := Cause(s.describe().stderr); line != "" {
		text += "; on its standard error: " + line
	}
	return toolerr.New(toolerr.ServerOffline, "the server %s", text)
}

func (s *stdio) describe() description {
	return description{pid: s.proc.pid(), stderr: s.cfg.conceal(s.proc.stderr.String())}
}
