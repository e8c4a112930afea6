package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Scope says who shares a run of a server.
type Scope string

// The scopes. With PerSession each caller has its own run, which ends after the caller
// was idle for instanceIdle. With PerCall each call has its own run. One more run
// lists the server's tools.
const (
	Shared     Scope = "shared"
	PerSession Scope = "session"
	PerCall    Scope = "call"
)

const (
	maxVisits    = 64
	instanceIdle = 10 * time.Minute
)

// instances holds the runs of single callers.
type instances struct {
	mu       sync.Mutex
	byCaller map[string]*instance // by the caller's id
	done     bool
}

// instance is the run of one caller.
type instance struct {
	server *Server
	users  int
	last   time.Time // time of the last use
	idle   *time.Timer
}

// instanceOf returns the run for a caller. The caller of instanceOf calls leave when
// it does not need the run any more.
func (s *Server) instanceOf(caller string) (one *Server, leave func(), err error) {
	switch s.cfg.Scope {
	case PerCall:
		return s.newForCall()
	case PerSession:
		v, err := s.acquireInstance(caller)
		if err != nil {
			return nil, nil, err
		}
		return v.server, func() { s.releaseInstance(caller, v) }, nil
	}
	return s, func() {}, nil
}

// newForCall returns a run for one call.
func (s *Server) newForCall() (*Server, func(), error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, errClosed
	}
	s.work.Add(1)
	s.mu.Unlock()
	one := s.clone()
	stop := context.AfterFunc(s.ctx, one.Close)
	return one, func() {
		go func() { // the caller need not wait for its end
			defer s.work.Done()
			stop()
			one.Close()
		}()
	}, nil
}

// clone returns a server with the same configuration, not started.
func (s *Server) clone() *Server {
	cfg := s.cfg
	cfg.Scope, cfg.Share = Shared, nil
	one := &Server{cfg: cfg, spawner: s.spawner}
	one.cfg.afterHandshake = one.restoreSubscriptions
	one.ctx, one.end = context.WithCancel(context.Background())
	s.mu.Lock()
	one.era, one.transport, one.level = s.era, s.transport, s.level
	s.mu.Unlock()
	return one
}

func (s *Server) acquireInstance(caller string) (*instance, error) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	if s.instances.done {
		return nil, errClosed
	}
	v := s.instances.byCaller[caller]
	if v == nil {
		if len(s.instances.byCaller) >= maxVisits && !s.evictIdle() {
			return nil, toolerr.New(toolerr.LimitReached, "server %s runs for %d callers, the maximum; try again later", s.cfg.Name, maxVisits)
		}
		if s.instances.byCaller == nil {
			s.instances.byCaller = map[string]*instance{}
		}
		v = &instance{server: s.clone()}
		s.instances.byCaller[caller] = v
	}
	if v.idle != nil {
		v.idle.Stop()
	}
	v.users++
	return v, nil
}

func (s *Server) releaseInstance(caller string, v *instance) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	v.users--
	v.last = time.Now()
	if v.users == 0 && s.instances.byCaller[caller] == v {
		v.idle = time.AfterFunc(instanceIdle, func() { s.EndSession(caller) })
	}
}

// evictIdle ends the run that has been idle longest, if any is idle. The caller holds the
// instances' mu.
func (s *Server) evictIdle() bool {
	var oldest string
	var found *instance
	for caller, v := range s.instances.byCaller {
		if v.users == 0 && (found == nil || v.last.Before(found.last)) {
			oldest, found = caller, v
		}
	}
	if found != nil {
		s.dismiss(oldest, found)
	}
	return found != nil
}

// dismiss ends a run in the background. The caller holds the instances' mu.
func (s *Server) dismiss(caller string, v *instance) {
	delete(s.instances.byCaller, caller)
	if v.idle != nil {
		v.idle.Stop()
	}
	s.work.Go(v.server.Close)
}

// EndSession ends the run of a caller that has disconnected. If a call is still
// running, the run ends when it is idle.
func (s *Server) EndSession(caller string) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	if v := s.instances.byCaller[caller]; v != nil && v.users == 0 && !s.instances.done {
		s.dismiss(caller, v)
	}
}

// endInstances ends all runs of single callers and waits for their end.
func (s *Server) endInstances() {
	s.instances.mu.Lock()
	s.instances.done = true
	by := s.instances.byCaller
	s.instances.byCaller = nil
	s.instances.mu.Unlock()
	var all sync.WaitGroup
	for _, v := range by {
		if v.idle != nil {
			v.idle.Stop()
		}
		all.Go(v.server.Close)
	}
	all.Wait()
}

// servers returns the runs of single callers.
func (v *instances) servers() []*Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []*Server
	for _, one := range v.byCaller {
		all = append(all, one.server)
	}
	return all
}
