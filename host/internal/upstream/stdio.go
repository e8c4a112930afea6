package upstream

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// stdio is the wire to a local program: one message a line on its standard input and
// output.
type stdio struct {
	*writer
	cfg     Config
	proc    *process
	spawner *Spawner

	outputEnded chan struct{} // closed when its output has ended
	ended       chan struct{} // closed when none of its processes is left

	mu      sync.Mutex
	recv    receiver          // nil before run
	endSeen bool              // there was a sign of the end
	wide    map[*os.File]bool // its widened pipes
}

// startStdio starts a server's program. It returns SERVER_OFFLINE if that fails.
func startStdio(cfg Config, spawner *Spawner) (*stdio, error) {
	s := &stdio{cfg: cfg, spawner: spawner, outputEnded: make(chan struct{}), ended: make(chan struct{})}
	p, err := spawner.start(cfg, s.closeOnce)
	if err != nil {
		return nil, toolerr.New(toolerr.ServerOffline, "cannot start %s: %w", cfg.Command[0], err)
	}
	s.proc, s.writer = p, newWriter(p.stdin, cfg.WriteTimeout)
	s.onFail = s.closeOnce
	return s, nil
}

// run handles messages until the server's output ends, waits until the server has ended,
// and returns the reason.
func (s *stdio) run(c *conn) error { return s.runReceiver(c) }

// runReceiver does the same as run for any receiver. It uses no further goroutine, because
// there may be many servers, most of them idle.
func (s *stdio) runReceiver(r receiver) error {
	s.mu.Lock()
	s.recv = r
	if s.endSeen {
		go s.finish(r)
	}
	s.mu.Unlock()
	s.handleMessages(r)
	close(s.outputEnded)
	s.closeOnce()
	<-s.ended
	s.writer.awaitIdle()
	return s.exitError()
}

// close refuses further messages and ends the server.
func (s *stdio) close() {
	s.writer.close()
	s.closeOnce()
}

// closeOnce ends the process in the background. It is called at each sign of the end: the
// process exits, closes its output, does not read its input, or is stopped. The first call
// counts.
func (s *stdio) closeOnce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.endSeen && s.recv != nil {
		go s.finish(s.recv)
	}
	s.endSeen = true
}

// send writes or queues a message; see writer.send. For a large one it widens the pipe.
func (s *stdio) send(line []byte) error {
	s.widenFor(line)
	return s.writer.send(line)
}

// sendAnyway does the same as send, however much is queued; see writer.sendAnyway.
func (s *stdio) sendAnyway(line []byte) error {
	s.widenFor(line)
	return s.writer.sendAnyway(line)
}

// widenFor enlarges the buffer of the input for a large message.
func (s *stdio) widenFor(line []byte) {
	if len(line) > jsonrpc.DefaultPipeSize {
		s.widenPipe(s.proc.stdin)
	}
}

// widenPipe enlarges the buffer of a pipe, for this and later messages. Pipes of idle
// servers stay small.
func (s *stdio) widenPipe(pipe *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.wide[pipe]; known || s.endSeen {
		return
	}
	if s.wide == nil {
		s.wide = map[*os.File]bool{}
	}
	s.wide[pipe] = s.spawner.widenPipe(pipe)
}

// releaseWidened releases the widened pipes, which are closed.
func (s *stdio) releaseWidened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, counts := range s.wide {
		if counts {
			s.spawner.uncountPipe()
		}
	}
}

// finish waits until the connection ends, stops the process and its group, and then waits up
// to a second for the rest of its output.
func (s *stdio) finish(r receiver) {
	defer close(s.ended)
	select {
	case err := <-s.givenUp:
		r.fail(err)
	case <-s.proc.exited:
	case <-s.outputEnded:
		// The process usually exits at the same time; then that is the reason.
		select {
		case <-s.proc.exited:
		case <-time.After(200 * time.Millisecond):
			r.fail(s.exitError()) // before it is stopped, which may take seconds
		}
	case <-r.done():
	}
	s.proc.stop(s.cfg.CloseGrace, s.cfg.TermGrace)
	// The group has ended, so the pipe ends, unless a process that left the group
	// still holds it.
	select {
	case <-s.outputEnded:
	case <-time.After(time.Second):
	}
	s.proc.closeOutput()
	<-s.outputEnded
	r.fail(s.exitError()) // nobody has to wait for the rest of its tree
	s.releaseWidened()
	s.spawner.processEnded(s.proc)
}

// A server that floods is read at a limited rate, so that it does not take the machine
// from others: its pipe fills, and it waits. tail.readFrom does the same for standard error.
const (
	noisePause = time.Millisecond // after noiseLines that were not messages
	noiseLines = 256              // in succession
)

// handleMessages handles messages until the server's output ends. It counts lines that
// cannot be messages without parsing them.
func (s *stdio) handleMessages(r receiver) {
	in := jsonrpc.NewReader(s.proc.stdout, s.cfg.MaxLine)
	noise := 0
	for {
		line, err := in.ReadLine()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			r.failTooLong(err)
		case err != nil:
			return
		default:
			if len(line) > jsonrpc.DefaultPipeSize {
				s.widenPipe(s.proc.stdout)
			}
			line = bytes.TrimLeft(line, " \t")
			switch {
			case len(line) == 0:
			case line[0] == '{', isBatch(line):
				r.handleLine(line)
				noise = 0
				continue
			default:
				r.countStray(line)
			}
		}
		if noise++; noise%noiseLines == 0 {
			time.Sleep(noisePause)
		}
	}
}

// exitError returns an error that describes the end of the process.
func (s *stdio) exitError() error {
	text := s.proc.exitText()
	d := s.describe()
	if line := Cause(d.stderr); line != "" {
		text += "; on its standard error: " + line
	}
	if d.sandbox != "" {
		text += "; it runs in a sandbox (" + d.sandbox + ")"
	}
	if len(d.refused) > 0 {
		text += ", which refused " + strings.Join(d.refused[:min(len(d.refused), 3)], "; ")
	}
	return toolerr.New(toolerr.ServerOffline, "the server %s", text)
}

// describe returns the known properties of the process, without credentials.
func (s *stdio) describe() wireDescription {
	d := wireDescription{pid: s.proc.pid(), stderr: s.cfg.redact(s.proc.stderr.String())}
	if inside := s.proc.confined; inside != nil {
		d.sandbox, d.refused = inside.Sandbox(), inside.Refused()
	}
	return d
}
