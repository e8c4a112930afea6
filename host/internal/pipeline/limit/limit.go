// Package limit is the stage that bounds the concurrent calls, and decides which waiting call
// is next.
//
// A server gets 5 concurrent calls by default. A tool that declares how many of its calls may
// run concurrently has its own permits. Other calls wait, in the order of arrival for each
// caller. Between callers, the one with the fewest running calls is next, in turn if they are
// equal. Callers with the same account (all clients at an address) share its turn, and take
// turns within it. So a client that floods a server, with any number of connections, delays
// only itself.
//
// The last free permit of a server is reserved: a caller that has a permit, or whose account
// has one, does not get it while another caller has none but had one within the last minute.
// So a caller with occasional calls does not wait for one of the flood's calls to end. A
// single caller gets all permits.
//
// The queue is bounded in calls of one caller, in bytes of all (but one call of each caller
// always fits), and in time. Beyond that a call fails with RATE_LIMITED and the time of the
// next try.
//
// Control calls, which inspect or end running jobs, do not count. A server whose calls make
// calls themselves, as an agent's do, has separate permits for each depth, so that a call never
// waits for a permit held by the call that contains it.
package limit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the limits. Zero values mean the defaults.
type Config struct {
	Concurrent  int            // concurrent calls of a server; 5. Negative: no limit
	Servers     map[string]int // Concurrent by server; also replaces the limits of its tools
	MaxParallel int            // concurrent calls of a caller on all servers; 0: 10 within a turn, otherwise no limit. Negative: no limit
	Queue       int            // waiting calls of a caller for a server; 1000
	QueueBytes  int64          // bytes of the parameters of all calls that wait for a server; 64 MiB
	MaxWait     time.Duration  // longest wait of a call; 1 min
	Nested      []string       // servers whose calls make other calls
	MaxDepth    int            // nesting of calls within such calls; 1
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{{"queue", int64(c.Queue)}, {"queue_bytes", c.QueueBytes}, {"max_wait", int64(c.MaxWait)}, {"max_depth", int64(c.MaxDepth)}} {
		if f.value < 0 {
			return fmt.Errorf("limit: %s must not be negative, got %d", f.name, f.value)
		}
	}
	return nil
}

// withDefaults returns the settings with defaults for those that are 0.
func (c Config) withDefaults() Config {
	def := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	def(&c.Concurrent, 5)
	def(&c.Queue, 1000)
	def(&c.MaxDepth, 1)
	if c.QueueBytes == 0 {
		c.QueueBytes = 64 << 20
	}
	if c.MaxWait == 0 {
		c.MaxWait = time.Minute
	}
	return c
}

const (
	// maxDeclaredPermits bounds the limit that a tool can declare.
	maxDeclaredPermits = 256
	// A tool's limit of wholeServerLimit or more concurrent calls applies to its whole
	// server: tools made with mcpkit permit 64 calls in total, so that
	// one tool with as many permits would leave none to the others.
	wholeServerLimit = 64
)

// A Limiter holds the permits. It is safe for concurrent use.
type Limiter struct {
	cfg    Config
	nested map[string]bool

	mu      sync.Mutex
	servers map[permitKey]*permitPool
	callers map[callerAccount]*permitPool // of MaxParallel
}

// permitKey identifies a set of permits: those of a server or of one tool, at a depth.
type permitKey struct {
	server, tool string
	depth        int
}

// callerAccount identifies a caller.
type callerAccount struct {
	entryPoint, id string
	depth          int
}

// accountOf returns the account under which a call counts.
func accountOf(req *call.Request) callerAccount {
	return callerAccount{"", req.Caller.AccountName(), req.Caller.Depth}
}

// New returns a limiter with all permits free.
func New(c Config) *Limiter {
	l := &Limiter{cfg: c.withDefaults(), nested: map[string]bool{}, servers: map[permitKey]*permitPool{}, callers: map[callerAccount]*permitPool{}}
	for _, server := range c.Nested {
		l.nested[server] = true
	}
	return l
}

// Stage returns a handler that waits for a permit before each call.
func (l *Limiter) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		at, size := l.permitsFor(req)
		if at.depth > l.cfg.MaxDepth {
			return nil, toolerr.New(toolerr.LimitReached, "%s is nested in %d calls, the maximum is %d; continue without it", req.Tool.Name, at.depth, l.cfg.MaxDepth)
		}
		if req.Tool.Control {
			return next(ctx, req)
		}
		caller := callerAccount{req.Caller.EntryPoint, req.Caller.ID, req.Caller.Depth}
		if parallel := l.parallelLimit(req.Caller); parallel > 0 {
			mine, err := l.acquire(ctx, l.callerPool, permitKey{}, parallel, accountOf(req), req)
			if err != nil {
				return nil, err
			}
			defer mine.release(l)
		}
		if size <= 0 {
			return next(ctx, req)
		}
		permit, err := l.acquire(ctx, l.serverPool, at, size, caller, req)
		if err != nil {
			return nil, err
		}
		defer permit.release(l)
		return next(ctx, permit.releaseDuringQuestions(l, req))
	}
}

// parallelLimit returns the limit of concurrent calls of a caller on all servers; 0 or
// less: none.
func (l *Limiter) parallelLimit(c call.Caller) int {
	if l.cfg.MaxParallel == 0 && c.ModelTurn != "" {
		return 10
	}
	return l.cfg.MaxParallel
}

// permitsFor returns which permits a call needs and how many there are; size 0 or less
// means no limit.
func (l *Limiter) permitsFor(req *call.Request) (permitKey, int) {
	t := req.Tool
	at := permitKey{server: t.Server}
	if l.nested[t.Server] {
		at.depth = req.Caller.Depth
	}
	if n, ok := l.cfg.Servers[t.Server]; ok && n != 0 {
		return at, n
	}
	if t.MaxConcurrent > 0 {
		if t.MaxConcurrent < wholeServerLimit {
			at.tool = t.Name
		}
		return at, min(t.MaxConcurrent, maxDeclaredPermits)
	}
	return at, l.cfg.Concurrent
}

// serverPool returns the pool of a server or tool, a new one with size permits if
// necessary. l.mu is held. It has the signature that acquire needs.
func (l *Limiter) serverPool(at permitKey, size int, _ callerAccount) *permitPool {
	p := l.servers[at]
	if p == nil {
		p = newPermitPool(size)
		l.servers[at] = p
	}
	p.size = size // a tool can change its declared limit
	return p
}

// callerPool returns the pool of a caller, a new one with size permits if necessary. l.mu
// is held. It has the signature that acquire needs.
func (l *Limiter) callerPool(_ permitKey, size int, caller callerAccount) *permitPool {
	p := l.callers[caller]
	if p == nil {
		p = newPermitPool(size)
		p.account = caller
		l.callers[caller] = p
	}
	return p
}

// acquire waits for a permit of the pool that find returns, at most Config.MaxWait. It
// returns RATE_LIMITED if the queue is full or the wait is too long, and the error of ctx.
func (l *Limiter) acquire(ctx context.Context, find func(permitKey, int, callerAccount) *permitPool, at permitKey, size int, caller callerAccount, req *call.Request) (permit, error) {
	now := time.Now()
	l.mu.Lock()
	p := find(at, size, caller)
	c := p.callerState(caller, accountOf(req), now)
	if len(c.queue) == 0 && p.canTake(c, now) {
		p.take(c)
		l.mu.Unlock()
		return permit{p, c, now}, nil
	}
	bytes := int64(len(req.Params))
	if len(c.queue) >= l.cfg.Queue || p.bytes+bytes > l.cfg.QueueBytes && len(c.queue) > 0 {
		err := p.queueFullError(req.Tool, len(c.queue))
		l.mu.Unlock()
		return permit{}, err
	}
	w := &waiter{ready: make(chan struct{}), bytes: bytes}
	p.enqueue(c, w)
	l.mu.Unlock()

	timer := time.NewTimer(l.cfg.MaxWait)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return permit{p, c, time.Now()}, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.granted { // at the same moment
		if err == nil {
			return permit{p, c, time.Now()}, nil
		}
		p.takeBack(c, time.Now())
		return permit{}, err
	}
	p.removeWaiter(c, w)
	if err == nil {
		err = p.queueFullError(req.Tool, len(c.queue))
	}
	return permit{}, err
}

// A permit is the right of one call to run.
type permit struct {
	p     *permitPool
	c     *callerState
	since time.Time
}

// release gives the permit back, and lets the next waiting call begin.
func (h permit) release(l *Limiter) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	h.p.recordDuration(now.Sub(h.since))
	h.p.takeBack(h.c, now)
	if h.p.account != (callerAccount{}) && h.p.held == 0 && len(h.p.waiting) == 0 {
		delete(l.callers, h.p.account)
	}
}

// A Load describes the load of a server, or of a tool with its own permits.
type Load struct {
	Server  string `json:"server"`
	Tool    string `json:"tool,omitempty"`
	Permits int    `json:"permits"`
	Running int    `json:"running"`
	Waiting int    `json:"waiting"`
	Refused int64  `json:"refused"` // because the queue was full or the wait too long
}

// Loads returns the load of all servers that were called, in no order.
func (l *Limiter) Loads() []Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	loads := make([]Load, 0, len(l.servers))
	for at, p := range l.servers {
		load := Load{Server: at.server, Tool: at.tool, Permits: p.size, Running: p.held, Refused: p.refused}
		for _, c := range p.waiting {
			load.Waiting += len(c.queue)
		}
		loads = append(loads, load)
	}
	return loads
}
