package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// startAttempt is a running start, for which any number of callers wait.
type startAttempt struct {
	done chan struct{} // closed when conn and err are set
	conn *conn
	err  error
}

// Restart policy for a server that has died or does not start: at once if it was
// healthy, else after 100 ms, 200 ms and so on. After maxTries failures in succession
// it is offline; then it is tried every RetryEvery, and when it is called, at most
// every callStartInterval. A caller waits for the next try if that is at most maxRestartWait
// away; otherwise it gets an error.
const (
	firstBackoff      = 100 * time.Millisecond
	maxTries          = 5
	callStartInterval = 5 * time.Second
	maxRestartWait    = 2 * time.Second
	settledAfter      = 10 * time.Second // a server that lived this long has started well
)

// connection returns a live connection. It starts the server if none exists, and waits for a
// running start. After a failure it waits at most maxRestartWait for the next start, and
// otherwise returns the error of the last one. For a server over HTTP that was reachable
// before, it tries again for maxRestartWait, since such a server is usually being
// restarted.
func (s *Server) connection(ctx context.Context) (*conn, error) {
	for begin := time.Now(); ; {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case s.cfg.Disabled:
			s.mu.Unlock()
			return nil, errDisabled
		case s.conn != nil && s.conn.isAlive() && !s.conn.isStale():
			c := s.conn
			s.mu.Unlock()
			return c, nil
		case s.refused != nil:
			s.mu.Unlock()
			return nil, s.refused
		}
		if s.last != nil && s.last.auth && s.starting == nil && s.cfg.Auth != nil && s.cfg.Auth.Changed() {
			s.fails, s.nextStart = 0, time.Time{}
		}
		wait := time.Until(s.nextStart)
		if s.starting == nil && wait <= 0 {
			s.beginStart()
		}
		st, last := s.starting, s.last
		returns := s.cfg.URL != "" && s.conn != nil
		s.mu.Unlock()

		if st == nil { // in the pause after a failure
			if wait > maxRestartWait {
				return nil, s.offlineError(last, wait)
			}
			if err := sleep(ctx, s.ctx, wait); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-st.done:
			if st.err == nil {
				return st.conn, nil
			}
			if !returns || time.Since(begin) > maxRestartWait || toolerr.CodeOf(st.err) == toolerr.AuthFailed {
				return nil, st.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// offlineError returns the error of the last failure for a call that would have to wait
// too long for the next start.
func (s *Server) offlineError(last *Failure, wait time.Duration) error {
	if last.signIn {
		return toolerr.New(last.code, "%w", last.err)
	}
	return toolerr.New(last.code, "%s; try again after %v", last.Message, wait.Round(100*time.Millisecond))
}

// sleep waits for d. It returns ctx's error if ctx ends, and errClosed if life ends.
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

// beginStart starts the server in the background. An existing connection is used until the
// new one is ready. The caller holds s.mu.
func (s *Server) beginStart() *startAttempt {
	st := &startAttempt{done: make(chan struct{})}
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
			s.era = "" // another server may be there now
			changed = s.recordFailure(StageStart, st.err)
		} else {
			s.conn, s.era = st.conn, st.conn.era
			s.work.Go(func() { s.watch(st.conn) })
			if s.closed {
				st.conn.fail(errClosed)
			}
		}
		s.mu.Unlock()
		close(st.done)
		s.reportFailure()
		if st.err == nil && before != nil && before.isAlive() {
			s.work.Go(func() { s.closeWhenIdle(before) })
		}
		if changed && s.onChange != nil {
			s.onChange()
		}
	}()
	return st
}

// retireTimeout is the time that the calls of a replaced connection may still take, and staleTimeout
// that of a connection to a process that works well, but for others.
const (
	retireTimeout = 30 * time.Second
	staleTimeout  = time.Hour
)

// closeWhenIdle ends a replaced connection when its calls have ended, or after its time.
func (s *Server) closeWhenIdle(c *conn) {
	most := retireTimeout
	if c.isStale() {
		most = staleTimeout
	}
	c.awaitIdle(s.ctx, most)
	c.fail(errReplaced)
}

// awaitIdle waits until no request is running, until life ends, or for d.
func (c *conn) awaitIdle(life context.Context, d time.Duration) {
	for end := time.Now().Add(d); c.isBusy() && time.Now().Before(end); {
		if sleep(life, life, 20*time.Millisecond) != nil {
			return
		}
	}
}

var (
	errReplaced = toolerr.New(toolerr.ServerOffline, "the server was restarted")
	errDisabled = toolerr.New(toolerr.ServerOffline, "the server is disabled in the configuration")
)

// watch follows a connection until it has ended: it lists the tools again after changes,
// checks the server's health, and records how it ended.
func (s *Server) watch(c *conn) {
	health := time.NewTicker(s.cfg.HealthEvery)
	defer health.Stop()
	var heard int64
	for {
		select {
		case <-c.toolsChanged:
			ctx, cancel := context.WithTimeout(s.ctx, s.cfg.StartTimeout)
			err := c.listTools(ctx)
			cancel()
			if err == nil && s.onChange != nil {
				s.onChange()
			}
		case <-health.C:
			if now := c.messages.Load(); now != heard {
				heard = now
				continue
			}
			s.work.Go(func() { s.checkHealth(c) })
		case <-c.dead:
			s.mu.Lock()
			changed := !s.closed && s.conn == c && s.recordFailure(StageRun, c.failure())
			s.mu.Unlock()
			s.reportFailure()
			if changed && s.onChange != nil {
				s.onChange()
			}
			c.awaitIdle(s.ctx, retireTimeout)
			c.closeUnused()
			<-c.ended
			return
		}
	}
}

// checkHealth checks the health of an idle server; the watchdog checks a busy one. A
// server that answered health checks before and stops answering is replaced. If the
// replacement does not start, the old one stays until a call fails.
func (s *Server) checkHealth(c *conn) {
	if c.isBusy() {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.QuietTime)
	defer cancel()
	err := c.ping(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.conn != c || !c.isAlive():
	case !errors.Is(err, context.DeadlineExceeded): // an error answer is a sign of life, too
		c.answeredPing, c.missesPings = true, false
	case c.answeredPing:
		c.missesPings = true
		s.last = newFailure(StageHealth, toolerr.New(toolerr.ServerOffline, "it did not answer a ping within %v", s.cfg.QuietTime))
		if s.starting == nil {
			s.beginStart()
		}
	}
}

// scheduleStart starts the server after a pause, unless it was started meanwhile. The
// caller holds s.mu.
func (s *Server) scheduleStart(pause time.Duration) {
	if s.closed {
		return
	}
	if s.retry != nil {
		s.retry.Stop()
	}
	s.retry = time.AfterFunc(pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed && s.starting == nil && (s.conn == nil || !s.conn.isAlive()) {
			s.beginStart()
		}
	})
}

// Reconnect restarts the server at once, and waits until it is ready or ctx ends. A running
// one is used until the new one is ready, and stays if that does not start; then Reconnect
// returns its error. It returns errClosed or errDisabled, or the reason why the server is
// refused.
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
		s.fails, s.nextStart = 0, time.Time{}
		st = s.beginStart()
	}
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recordSuccess records that a call was answered: the server counts as working, and the
// next restart has no pause.
func (s *Server) recordSuccess(c *conn) {
	if c.answeredCall.Swap(true) {
		return
	}
	s.mu.Lock()
	s.fails = 0
	s.mu.Unlock()
}

// connect starts the server and opens the session within StartTimeout, with the era and
// transport that worked before, or with the configured ones. If these fail, it can try
// others.
func (s *Server) connect() (*conn, error) {
	s.mu.Lock()
	era, transport := s.era, s.transport
	s.mu.Unlock()
	known := era != "" && era != s.cfg.Era
	if !known {
		era = s.cfg.Era
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.StartTimeout)
	defer cancel()
	c, err := s.openConnection(ctx, era, transport)
	if err != nil && known && s.cfg.URL != "" && ctx.Err() == nil && !errors.Is(err, errNotSent) {
		era = s.cfg.Era // another server may be there now
		c, err = s.openConnection(ctx, era, transport)
	}
	switch {
	case err == nil || ctx.Err() != nil || isHostLoop(err):
	case s.cfg.URL == "" && era == Auto:
		// Some legacy servers exit at a first message that they do not know.
		c, err = s.openConnection(ctx, Legacy, "")
	case errors.Is(err, errOtherTransport) && transport != SSE && era != Modern:
		var other error
		if c, other = s.openConnection(ctx, Legacy, SSE); other != nil {
			return nil, err
		}
		s.mu.Lock()
		s.transport = SSE
		s.mu.Unlock()
		return c, nil
	}
	return c, err
}

// openConnection starts the program or connects, makes the handshake and lists the tools.
// If that fails, it returns after the connection has ended. The error is errClosed if s is
// closed.
func (s *Server) openConnection(ctx context.Context, era Era, transport Transport) (*conn, error) {
	out, err := s.dial(ctx, transport)
	if err != nil {
		return nil, err
	}
	if transport == SSE {
		era = Legacy
	}
	c := newConn(s.cfg, out)
	err = c.handshake(ctx, era)
	if err == nil {
		err = c.listTools(ctx)
	}
	if shared, ok := out.(*sharedWire); ok && err == nil && s.cfg.Roots != nil {
		shared.sendRoots(s.cfg.Roots()) // they may have changed during the start
	}
	if err == nil {
		return c, nil
	}
	if err = c.startError(ctx, err); s.ctx.Err() != nil {
		err = errClosed
	}
	c.fail(err)
	c.closeUnused()
	<-c.ended
	return nil, err
}

// dial starts the program, or returns the wire for the server's address with a transport,
// which is not opened yet. It returns SERVER_OFFLINE if the program does not start.
func (s *Server) dial(ctx context.Context, transport Transport) (wire, error) {
	switch {
	case s.cfg.Serve != nil:
		return newInProcess(s.cfg), nil
	case s.cfg.URL == "" && s.cfg.Share != nil && s.cfg.Scope == Shared:
		return s.dialShared(ctx)
	case s.cfg.URL == "":
		return startStdio(s.cfg, s.spawner)
	case transport == SSE:
		return newSSE(s.cfg)
	}
	return newStreamable(s.cfg)
}

// dialShared connects to the server's shared process. If servers cannot be shared, it
// starts the program for this host alone.
func (s *Server) dialShared(ctx context.Context) (wire, error) {
	var marks []string
	if files := s.spawner.files.Load(); files != nil {
		marks = *files
	}
	s.mu.Lock()
	replaces := 0
	if s.conn != nil {
		replaces = s.conn.replacedPID()
	}
	s.mu.Unlock()
	w, err := attachShared(ctx, s.cfg, marks, replaces)
	switch {
	case err == nil:
		return w, nil
	case !errors.Is(err, errUnavailable) || ctx.Err() != nil:
		return nil, err
	}
	if s.cfg.Share.OnUnavailable != nil {
		s.cfg.Share.OnUnavailable(err)
	}
	return startStdio(s.cfg, s.spawner)
}
