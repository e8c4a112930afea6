package upstream

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Scope says who shares a run of a server.
type Scope string

// The scopes. With PerSession each caller has its own run, which ends after the caller
// was idle for instanceIdleTimeout. With PerCall each call has its own run. One more run
// lists the server's tools.
const (
	Shared     Scope = "shared"
	PerSession Scope = "session"
	PerCall    Scope = "call"
)

const (
	maxInstances        = 64
	maxSignedIn         = 1000 // runs with a caller's own credentials
	instanceIdleTimeout = 10 * time.Minute
)

// instances holds the runs of single callers.
type instances struct {
	mu       sync.Mutex
	byCaller map[string]*instance // by the caller's id, the key of its credentials, or both
	closed   bool
}

// instance is the run of one caller.
type instance struct {
	server         *Server
	ownCredentials bool // it has the caller's own credentials
	begun          time.Time
	users          int
	last           time.Time // time of the last use
	idle           *time.Timer
}

// instanceOf returns the run for a caller, which is s itself if the caller has none of its
// own. After a question that could be for several users, each of them has one. The caller of instanceOf calls leave when it does not need the run any more; leave
// is nil with an error.
func (s *Server) instanceOf(caller call.Caller) (one *Server, leave func(), err error) {
	credentials, key := credentials{auth: s.cfg.Auth}, ""
	if s.cfg.AuthFor != nil {
		var auth Authorizer
		if key, auth, err = s.cfg.AuthFor(caller); err != nil {
			return nil, nil, err
		}
		if key != "" {
			credentials.auth, credentials.ofCaller = auth, true
		}
	}
	switch {
	case s.cfg.Scope == PerCall:
		return s.newCallInstance(credentials)
	case s.cfg.Scope == PerSession && key == "":
		key = caller.ID
	case s.cfg.Scope == PerSession:
		key += "\x00" + caller.ID
	case key == "" && s.cfg.owners.AreSeparate() && isClient(caller):
		owner := caller.Owner()
		key = "\x00" + owner.Profile + "\x00" + owner.User
	case key == "":
		return s, func() {}, nil
	}
	v, err := s.acquireInstance(key, credentials)
	if err != nil {
		return nil, nil, err
	}
	return v.server, func() { s.releaseInstance(key, v) }, nil
}

// credentials are the credentials of a run.
type credentials struct {
	auth     Authorizer
	ofCaller bool // they belong to one caller
}

// ListFor returns the tools that the server lists for a caller. It starts the caller's run
// if necessary.
func (s *Server) ListFor(ctx context.Context, caller call.Caller) ([]json.RawMessage, error) {
	one, leave, err := s.instanceOf(caller)
	if err != nil {
		return nil, err
	}
	defer leave()
	return one.Tools(ctx)
}

// ToolsOfCallers returns the listed tools of the oldest running run that has a caller's
// own credentials; false without such a run.
func (s *Server) ToolsOfCallers() (tools []json.RawMessage, ok bool) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	var oldest *instance
	for _, v := range s.instances.byCaller {
		if v.ownCredentials && (oldest == nil || v.begun.Before(oldest.begun)) {
			if listed := v.server.listedTools(); listed != nil {
				tools, oldest = listed, v
			}
		}
	}
	return tools, oldest != nil
}

// listedTools returns the tools of a running server, nil if it does not run.
func (s *Server) listedTools() []json.RawMessage {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil || !c.isAlive() {
		return nil
	}
	return append([]json.RawMessage{}, c.listedTools()...)
}

// newCallInstance returns a new run for one call, with the credentials as, and a function
// that ends it in the background. After Close it returns errClosed.
func (s *Server) newCallInstance(as credentials) (*Server, func(), error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, errClosed
	}
	s.work.Add(1)
	s.mu.Unlock()
	one := s.clone(as)
	stop := context.AfterFunc(s.ctx, one.Close)
	return one, func() {
		go func() { // the caller need not wait for its end
			defer s.work.Done()
			stop()
			one.Close()
		}()
	}, nil
}

// clone returns a server with the same configuration and other credentials, which is not
// started. A caller's own credentials replace Token, HeadersHelper, the header
// Authorization and Auth.
func (s *Server) clone(as credentials) *Server {
	cfg := s.cfg
	cfg.Scope, cfg.Share, cfg.AuthFor, cfg.Auth = Shared, nil, nil, as.auth
	if as.ofCaller {
		cfg.onNotification = nil // it has data of one caller, and would go to the clients of all
		cfg.Token, cfg.HeadersHelper = "", OneShot{}
		cfg.Headers = maps.Clone(cfg.Headers)
		maps.DeleteFunc(cfg.Headers, func(name string, _ secret.Text) bool { return strings.EqualFold(name, "Authorization") })
	}
	one := &Server{cfg: cfg, spawner: s.spawner}
	one.cfg.afterHandshake, one.cfg.owners = one.restoreSubscriptions, &call.Owners{}
	one.ctx, one.end = context.WithCancel(context.Background())
	s.mu.Lock()
	one.era, one.transport, one.level = s.era, s.transport, s.level
	s.mu.Unlock()
	return one
}

// acquireInstance returns the instance with the key caller, and creates it if necessary;
// its first request starts it. At the limit (maxInstances, or maxSignedIn with own
// credentials) it ends the instance that was idle longest, or returns LIMIT_REACHED if
// all are in use. After Close it returns errClosed. releaseInstance must be called once.
func (s *Server) acquireInstance(caller string, as credentials) (*instance, error) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	if s.instances.closed {
		return nil, errClosed
	}
	v := s.instances.byCaller[caller]
	if v == nil {
		most := maxInstances
		if as.ofCaller {
			most = maxSignedIn
		}
		if len(s.instances.byCaller) >= most && !s.evictIdle() {
			return nil, toolerr.New(toolerr.LimitReached, "server %s runs for %d callers, the maximum; try again later", s.cfg.Name, most)
		}
		if s.instances.byCaller == nil {
			s.instances.byCaller = map[string]*instance{}
		}
		v = &instance{server: s.clone(as), ownCredentials: as.ofCaller, begun: time.Now()}
		if as.ofCaller { // the server's tools are those of these runs
			v.server.onChange = s.onChange
		}
		s.instances.byCaller[caller] = v
	}
	if v.idle != nil {
		v.idle.Stop()
	}
	v.users++
	return v, nil
}

// releaseInstance ends one use of an instance. An unused one ends after instanceIdleTimeout.
func (s *Server) releaseInstance(caller string, v *instance) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	v.users--
	v.last = time.Now()
	if v.users == 0 && s.instances.byCaller[caller] == v {
		v.idle = time.AfterFunc(instanceIdleTimeout, func() { s.endIdleInstance(caller) })
	}
}

// evictIdle ends the run that has been idle longest, if any is idle. The caller holds the
// instances' mu.
func (s *Server) evictIdle() (evicted bool) {
	var oldest string
	var found *instance
	for caller, v := range s.instances.byCaller {
		if v.users == 0 && (found == nil || v.last.Before(found.last)) {
			oldest, found = caller, v
		}
	}
	if found != nil {
		s.endInBackground(oldest, found)
	}
	return found != nil
}

// endInBackground removes an instance and ends its run without waiting. The caller holds
// the instances' mu.
func (s *Server) endInBackground(caller string, v *instance) {
	delete(s.instances.byCaller, caller)
	if v.idle != nil {
		v.idle.Stop()
	}
	s.work.Go(v.server.Close)
}

// endIdleInstance ends the run of a caller if no request uses it. The idle timer calls it;
// a client's disconnection does not end its run.
func (s *Server) endIdleInstance(caller string) {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	if v := s.instances.byCaller[caller]; v != nil && v.users == 0 && !s.instances.closed {
		s.endInBackground(caller, v)
	}
}

// endInstances ends all runs of single callers and waits for their end.
func (s *Server) endInstances() {
	s.instances.mu.Lock()
	s.instances.closed = true
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
