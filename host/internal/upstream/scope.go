package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Scope says who shares a run of a server.
type Scope string

// The scopes. With PerSession each caller has a run of its own, which ends
// when the caller has been idle for visitIdle; with PerCall each call has. The
// run that lists the server's tools is one more.
const (
	Shared     Scope = "shared"
	PerSession Scope = "session"
	PerCall    Scope = "call"
)

const (
	maxVisits = 64
	visitIdle = 10 * time.Minute
)

// visits are the runs of single callers.
type visits struct {
	mu   sync.Mutex
	by   map[string]*visit // by the caller's id
	done bool
}

// visit is one caller's run.
type visit struct {
	server *Server
	users  int
	last   time.Time // when it was last used
	idle   *time.Timer
}

// of returns the run that a caller is to have, and what to call when it is not
// needed any more.
func (s *Server) of(caller string) (one *Server, leave func(), err error) {
	switch s.cfg.Scope {
	case PerCall:
		return s.once()
	case PerSession:
		v, err := s.enter(caller)
		if err != nil {
			return nil, nil, err
		}
		return v.server, func() { s.leave(caller, v) }, nil
	}
	return s, func() {}, nil
}

// once returns a run for one call.
func (s *Server) once() (*Server, func(), error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, errClosed
	}
	s.work.Add(1)
	s.mu.Unlock()
	one := s.another()
	stop := context.AfterFunc(s.life, one.Close)
	return one, func() {
		go func() { // the caller need not wait for its end
			defer s.work.Done()
			stop()
			one.Close()
		}()
	}, nil
}

// another returns a server of the same configuration, not started.
func (s *Server) another() *Server {
	cfg := s.cfg
	cfg.Scope = Shared
	one := &Server{cfg: cfg, spawner: s.spawner}
	one.cfg.resume = one.resume
	one.life, one.end = context.WithCancel(context.Background())
	s.mu.Lock()
	one.era, one.transport, one.level = s.era, s.transport, s.level
	s.mu.Unlock()
	return one
}

func (s *Server) enter(caller string) (*visit, error) {
	s.visits.mu.Lock()
	defer s.visits.mu.Unlock()
	if s.visits.done {
		return nil, errClosed
	}
	v := s.visits.by[caller]
	if v == nil {
		if len(s.visits.by) >= maxVisits && !s.evict() {
			return nil, toolerr.New(toolerr.LimitReached, "server %s runs for %d callers, the maximum; try again later", s.cfg.Name, maxVisits)
		}
		if s.visits.by == nil {
			s.visits.by = map[string]*visit{}
		}
		v = &visit{server: s.another()}
		s.visits.by[caller] = v
	}
	if v.idle != nil {
		v.idle.Stop()
	}
	v.users++
	return v, nil
}

func (s *Server) leave(caller string, v *visit) {
	s.visits.mu.Lock()
	defer s.visits.mu.Unlock()
	v.users--
	v.last = time.Now()
	if v.users == 0 && s.visits.by[caller] == v {
		v.idle = time.AfterFunc(visitIdle, func() { s.EndSession(caller) })
	}
}

// evict ends the run that has been idle longest, if any is. The visits' mu is
// held.
func (s *Server) evict() bool {
	var oldest string
	var found *visit
	for caller, v := range s.visits.by {
		if v.users == 0 && (found == nil || v.last.Before(found.last)) {
			oldest, found = caller, v
		}
	}
	if found != nil {
		s.dismiss(oldest, found)
	}
	return found != nil
}

// dismiss ends a run in the background. The visits' mu is held.
func (s *Server) dismiss(caller string, v *visit) {
	delete(s.visits.by, caller)
	if v.idle != nil {
		v.idle.Stop()
	}
	s.work.Go(v.server.Close)
}

// EndSession ends the run of a caller who is gone, unless a call of it is
// under way: then it ends when it has been idle.
func (s *Server) EndSession(caller string) {
	s.visits.mu.Lock()
	defer s.visits.mu.Unlock()
	if v := s.visits.by[caller]; v != nil && v.users == 0 && !s.visits.done {
		s.dismiss(caller, v)
	}
}

// endVisits ends all runs of single callers and waits until they are gone.
func (s *Server) endVisits() {
	s.visits.mu.Lock()
	s.visits.done = true
	by := s.visits.by
	s.visits.by = nil
	s.visits.mu.Unlock()
	var all sync.WaitGroup
	for _, v := range by {
		if v.idle != nil {
			v.idle.Stop()
		}
		all.Go(v.server.Close)
	}
	all.Wait()
}

// servers are the runs of single callers.
func (v *visits) servers() []*Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []*Server
	for _, one := range v.by {
		all = append(all, one.server)
	}
	return all
}
