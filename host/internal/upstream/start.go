package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// starting is one start under way, which any number of callers wait for.
type starting struct {
	done chan struct{} // closed when conn and err are set
	conn *conn
	err  error
}

// How a server that has died or does not start is started again: at once if it
// was well, else after 100 ms, 200 ms, … After maxTries failures in a row it is
// offline, and tried every RetryEvery, and when it is called, though not more
// often than every callPause. A caller waits for the next try if it is at
// most patience away, else it is told.
const (
	firstBackoff = 100 * time.Millisecond
	maxTries     = 5
	callPause    = 5 * time.Second
	patience     = 2 * time.Second
	settled      = 10 * time.Second // a server alive this long has started well
)

// ready returns a live connection, starting the server if there is none. One at
// an address that was there and is not is waited for as long as patience: most
// often it is being started anew.
func (s *Server) ready(ctx context.Context) (*conn, error) {
	for begin := time.Now(); ; {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case s.cfg.Disabled:
			s.mu.Unlock()
			return nil, errDisabled
		case s.conn != nil && s.conn.alive():
			c := s.conn
			s.mu.Unlock()
			return c, nil
		case s.refused != nil:
			s.mu.Unlock()
			return nil, s.refused
		}
		if s.last != nil && s.last.signIn && s.starting == nil && s.cfg.Auth != nil && s.cfg.Auth.Changed() {
			s.fails, s.notUntil = 0, time.Time{}
		}
		wait := time.Until(s.notUntil)
		if s.starting == nil && wait <= 0 {
			s.begin()
		}
		st, last := s.starting, s.last
		returns := s.cfg.URL != "" && s.conn != nil
		s.mu.Unlock()

		if st == nil { // in the pause after a failure
			if wait > patience {
				return nil, s.offline(last, wait)
			}
			if err := sleep(ctx, s.life, wait); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-st.done:
			if st.err == nil {
				return st.conn, nil
			}
			if !returns || time.Since(begin) > patience || toolerr.CodeOf(st.err) == toolerr.AuthFailed {
				return nil, st.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// offline is the error of a call that comes too early after a failure.
func (s *Server) offline(last *Failure, wait time.Duration) error {
	if last.signIn {
		return toolerr.New(last.code, "%s", last.Message)
	}
	return toolerr.New(last.code, "%s; the next call after %v tries again", last.Message, wait.Round(100*time.Millisecond))
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

// begin starts the server in the background. The connection there is, if any,
// is used until the new one is ready. s.mu is held.
func (s *Server) begin() *starting {
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
		before := s.conn
		changed := again
		if st.err != nil {
			s.era = "" // it may have been replaced by one that speaks otherwise
			changed = s.noteFailure(StageStart, st.err)
		} else {
			s.conn, s.era = st.conn, st.conn.era
			s.work.Go(func() { s.watch(st.conn) })
			if s.closed {
				st.conn.fail(errClosed)
			}
		}
		s.mu.Unlock()
		close(st.done)
		if st.err == nil && before != nil && before.alive() {
			s.work.Go(func() { s.retire(before) })
		}
		if changed && s.onChange != nil {
			s.onChange()
		}
	}()
	return st
}

// retireTime is how long the calls of a connection that has been replaced, or is
// over for others, may take.
const retireTime = 30 * time.Second

// retire ends a connection that has been replaced, once its calls are done.
func (s *Server) retire(c *conn) {
	c.untilIdle(s.life, retireTime)
	c.fail(errReplaced)
}

// untilIdle waits until no request is under way, as long as life and d.
func (c *conn) untilIdle(life context.Context, d time.Duration) {
	for end := time.Now().Add(d); c.busy() && time.Now().Before(end); {
		if sleep(life, life, 20*time.Millisecond) != nil {
			return
		}
	}
}

var (
	errReplaced = toolerr.New(toolerr.ServerOffline, "the server was restarted")
	errDisabled = toolerr.New(toolerr.ServerOffline, "the server is disabled in the configuration")
)

// watch sees to one connection until it has ended: it follows the changes of
// the server's list and looks after its health.
func (s *Server) watch(c *conn) {
	health := time.NewTicker(s.cfg.HealthEvery)
	defer health.Stop()
	var heard int64
	for {
		select {
		case <-c.changed:
			ctx, cancel := context.WithTimeout(s.life, s.cfg.StartTimeout)
			err := c.list(ctx)
			cancel()
			if err == nil && s.onChange != nil {
				s.onChange()
			}
		case <-health.C:
			if now := c.heard.Load(); now != heard {
				heard = now
				continue
			}
			s.work.Go(func() { s.examine(c) })
		case <-c.dead:
			s.mu.Lock()
			changed := !s.closed && s.conn == c && s.noteFailure(StageRun, c.reason())
			s.mu.Unlock()
			if changed && s.onChange != nil {
				s.onChange()
			}
			c.untilIdle(s.life, retireTime)
			c.leave()
			<-c.gone
			return
		}
	}
}

// examine asks an idle server for a sign of life; whether one that is at work
// is still there is for mind. One that gave signs before and gives none any more
// is replaced; if that fails, too, it stays until a call shows that it is of no
// use.
func (s *Server) examine(c *conn) {
	if c.busy() {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, s.cfg.QuietTime)
	defer cancel()
	err := c.ping(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.conn != c || !c.alive():
	case !errors.Is(err, context.DeadlineExceeded): // an error is a sign of life, too
		c.pinged, c.unwell = true, false
	case c.pinged:
		c.unwell = true
		s.last = newFailure(StageHealth, toolerr.New(toolerr.ServerOffline, "it did not answer a ping within %v", s.cfg.QuietTime))
		if s.starting == nil {
			s.begin()
		}
	}
}

// noteFailure records a failure and sees to it that the server is started
// again. It reports whether the server has been given up with it. s.mu is
// held.
func (s *Server) noteFailure(stage string, err error) bool {
	s.last = newFailure(stage, err)
	if leadsBack(err) {
		s.refuse(err)
		return true
	}
	if s.conn != nil && s.conn.alive() {
		return false // it was to be replaced, and is still there
	}
	if stage == StageRun && (s.conn.worked.Load() || time.Since(s.conn.since) > settled) {
		s.fails = 0
		s.notUntil = time.Time{}
		s.again(0)
		return false
	}
	s.fails++
	if s.fails >= maxTries {
		s.notUntil = time.Now().Add(callPause)
		s.again(s.cfg.RetryEvery)
		return s.fails == maxTries
	}
	backoff := firstBackoff << (s.fails - 1)
	s.notUntil = time.Now().Add(backoff)
	s.again(backoff)
	return false
}

// again starts the server after a pause, unless somebody else did. s.mu is
// held.
func (s *Server) again(pause time.Duration) {
	if s.closed {
		return
	}
	if s.retry != nil {
		s.retry.Stop()
	}
	s.retry = time.AfterFunc(pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed && s.starting == nil && (s.conn == nil || !s.conn.alive()) {
			s.begin()
		}
	})
}

// Reconnect starts the server anew at once. One that runs is used until the
// new one is ready, and stays if that does not become ready.
func (s *Server) Reconnect(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return errClosed
	case s.cfg.Disabled:
		s.mu.Unlock()
		return errDisabled
	case s.cfg.Refused != "":
		s.mu.Unlock()
		return s.refused
	}
	st := s.starting
	if st == nil {
		s.refused = nil
		s.fails, s.notUntil = 0, time.Time{}
		st = s.begin()
	}
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.err
	case <-ctx.Done():
		return ctx.Err()
	}
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

// connect starts the server and opens the session, in the era and with the
// transport found out before, or the configured ones.
func (s *Server) connect() (*conn, error) {
	s.mu.Lock()
	era, transport := s.era, s.transport
	s.mu.Unlock()
	known := era != "" && era != s.cfg.Era
	if !known {
		era = s.cfg.Era
	}
	ctx, cancel := context.WithTimeout(s.life, s.cfg.StartTimeout)
	defer cancel()
	c, err := s.open(ctx, era, transport)
	if err != nil && known && s.cfg.URL != "" && ctx.Err() == nil && !errors.Is(err, errNotSent) {
		era = s.cfg.Era // another may be there now, which speaks otherwise
		c, err = s.open(ctx, era, transport)
	}
	switch {
	case err == nil || ctx.Err() != nil || leadsBack(err):
	case s.cfg.URL == "" && era == Auto:
		// Some legacy servers exit at a first message they do not know.
		c, err = s.open(ctx, Legacy, "")
	case errors.Is(err, errOtherTransport) && transport != SSE && era != Modern:
		var other error
		if c, other = s.open(ctx, Legacy, SSE); other != nil {
			return nil, err
		}
		s.mu.Lock()
		s.transport = SSE
		s.mu.Unlock()
		return c, nil
	}
	return c, err
}

func (s *Server) open(ctx context.Context, era Era, transport Transport) (*conn, error) {
	out, err := s.dial(transport)
	if err != nil {
		return nil, err
	}
	if transport == SSE {
		era = Legacy
	}
	c := newConn(s.cfg, out)
	err = c.handshake(ctx, era)
	if err == nil {
		err = c.list(ctx)
	}
	if err == nil {
		return c, nil
	}
	if err = c.startError(ctx, err); s.life.Err() != nil {
		err = errClosed
	}
	c.fail(err)
	c.leave()
	<-c.gone
	return nil, err
}

// dial begins a run of the server.
func (s *Server) dial(transport Transport) (wire, error) {
	switch {
	case s.cfg.Serve != nil:
		return newInProcess(s.cfg), nil
	case s.cfg.URL == "":
		return startStdio(s.cfg, s.spawner)
	case transport == SSE:
		return newSSE(s.cfg)
	}
	return newStreamable(s.cfg)
}
