package upstream

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// starting is one start under way, which any number of callers wait for.
type starting struct {
	done chan struct{} // closed when conn and err are set
	conn *conn
	err  error
}

// How a server that does not start, or dies at once, is tried again: after
// 100 ms, 200 ms, … at most maxBackoff. A caller waits for the next try if it
// is at most patience away, else it is told.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
	patience     = 2 * time.Second
	settled      = 10 * time.Second // a server alive this long has started well
)

// ready returns a live connection, starting the server if there is none.
func (s *Server) ready(ctx context.Context) (*conn, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, errClosed
		}
		if s.conn != nil && s.conn.alive() {
			c := s.conn
			s.mu.Unlock()
			return c, nil
		}
		wait := time.Until(s.notUntil)
		if s.starting == nil && wait <= 0 {
			s.begin()
		}
		st, last := s.starting, s.last
		s.mu.Unlock()

		if st == nil { // in the pause after a failure
			if wait > patience {
				return nil, toolerr.New(toolerr.ServerOffline, "offline: %s; the next attempt is in %v", last.Message, wait.Round(100*time.Millisecond))
			}
			if err := sleep(ctx, s.life, wait); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-st.done:
			if st.err != nil {
				return nil, st.err
			}
			return st.conn, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func sleep(ctx, life context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-life.Done():
		return errClosed
	}
}

// begin starts the server in the background. s.mu is held.
func (s *Server) begin() {
	st := &starting{done: make(chan struct{})}
	s.starting = st
	s.starts++
	again := s.starts > 1
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		st.conn, st.err = s.connect()
		s.mu.Lock()
		s.starting = nil
		if st.err != nil {
			s.noteFailure("start", st.err)
		} else {
			s.conn, s.era = st.conn, st.conn.era
			if s.closed {
				st.conn.fail(errClosed)
			}
		}
		s.mu.Unlock()
		close(st.done)
		if st.err == nil {
			s.work.Go(func() { s.watch(st.conn) })
			if again && s.onChange != nil {
				s.onChange()
			}
		}
	}()
}

// watch waits for a connection's end and for its list to change.
func (s *Server) watch(c *conn) {
	for {
		select {
		case <-c.changed:
			ctx, cancel := context.WithTimeout(s.life, s.cfg.StartTimeout)
			err := c.list(ctx)
			cancel()
			if err == nil && s.onChange != nil {
				s.onChange()
			}
		case <-c.gone:
			s.mu.Lock()
			if !s.closed {
				s.noteFailure("run", c.reason())
			}
			s.mu.Unlock()
			return
		}
	}
}

// noteFailure records a failure and when to try again. s.mu is held.
func (s *Server) noteFailure(stage string, err error) {
	s.last = &Failure{Stage: stage, Message: err.Error(), Time: time.Now()}
	if stage == "run" && s.conn != nil && (s.conn.worked.Load() || time.Since(s.conn.since) > settled) {
		s.fails = 0 // it was up: start it again when it is needed
		s.notUntil = time.Time{}
		return
	}
	backoff := maxBackoff
	if s.fails < 7 {
		backoff = min(firstBackoff<<s.fails, maxBackoff)
	}
	s.fails++
	s.notUntil = time.Now().Add(backoff)
}

// worked records that a call was answered.
func (s *Server) worked(c *conn) {
	if c.worked.Swap(true) {
		return
	}
	s.mu.Lock()
	s.fails = 0
	s.mu.Unlock()
}

// connect starts the process and opens the session, in the era found out
// before, or the configured one.
func (s *Server) connect() (*conn, error) {
	s.mu.Lock()
	era := s.era
	s.mu.Unlock()
	if era == "" {
		era = s.cfg.Era
	}
	ctx, cancel := context.WithTimeout(s.life, s.cfg.StartTimeout)
	defer cancel()
	c, err := s.open(ctx, era)
	if err != nil && era == Auto && ctx.Err() == nil {
		// Some legacy servers exit at a first message they do not know.
		c, err = s.open(ctx, Legacy)
	}
	return c, err
}

func (s *Server) open(ctx context.Context, era Era) (*conn, error) {
	out, err := s.dial()
	if err != nil {
		return nil, err
	}
	c := newConn(s.cfg, out)
	err = c.handshake(ctx, era)
	if err == nil {
		err = c.list(ctx)
	}
	if err == nil {
		return c, nil
	}
	err = c.startError(ctx, err)
	c.fail(err)
	<-c.gone
	return nil, err
}

// dial begins a run of the server.
func (s *Server) dial() (wire, error) {
	if s.cfg.URL != "" {
		return newStreamable(s.cfg)
	}
	return startStdio(s.cfg, s.spawner)
}
