package policy

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxCallers bounds the callers and turns whose calls are counted.
	maxCallers = 4096
	// maxDistinctCalls bounds the different calls that are remembered for each.
	maxDistinctCalls = 1024
)

// counters counts the permitted calls, for the limits of the Config.
type counters struct {
	cfg  Config
	seed maphash.Seed

	mu      sync.Mutex
	tools   map[string]*recentCalls // nil: not limited
	callers map[callerKey]*callCounts

	unlisted map[string]*recentCalls // of tools that are not listed; at most maxUnlisted
}

// maxUnlisted bounds the windows of tools that are not listed, because clients choose their
// names.
const maxUnlisted = 1000

// callerKey identifies a caller, or one of its turns.
type callerKey struct {
	account, turn string
	all           bool // of all turns of the caller together
}

// callCounts holds the counters of a caller or turn.
type callCounts struct {
	calls int
	cost  float64
	same  map[uint64]int // number of calls by hash of tool and arguments
	last  time.Time
}

// countedCall records what admit counted for one call.
type countedCall struct {
	total, turn *callCounts
	hash        uint64
	price       float64
}

// recentCalls is a ring with the times of a tool's last calls.
type recentCalls struct {
	most  int
	times []time.Time
	next  int
}

// newCounters returns counters for the limits of c, without any call.
func newCounters(c Config) *counters {
	return &counters{cfg: c, seed: maphash.MakeSeed(), tools: map[string]*recentCalls{}, unlisted: map[string]*recentCalls{}, callers: map[callerKey]*callCounts{}}
}

// hasLimits reports whether the caller's calls are counted.
func (n *counters) hasLimits(c call.Caller) bool {
	return c.ModelTurn != "" || n.countsTotals() || len(n.cfg.MaxCallsPerMinute) > 0 || n.cfg.MaxIdenticalCalls > 0
}

// countsTotals reports whether there are limits for all calls of a caller.
func (n *counters) countsTotals() bool { return n.cfg.MaxTotalCalls > 0 || n.cfg.MaxCost > 0 }

// identicalLimit returns the limit of identical calls of a caller; 0: no limit.
func (n *counters) identicalLimit(c call.Caller) int {
	if n.cfg.MaxIdenticalCalls == 0 && c.ModelTurn != "" {
		return defaultMaxIdentical
	}
	return max(0, n.cfg.MaxIdenticalCalls)
}

// admit counts a call, or returns an error that names the exceeded limit and counts
// nothing.
func (n *counters) admit(req *call.Request) (t countedCall, err error) {
	c := req.Caller
	if !n.hasLimits(c) {
		return t, nil
	}
	identical := n.identicalLimit(c)
	if identical > 0 {
		arguments, err := req.Arguments()
		if err != nil {
			return t, err
		}
		t.hash = n.hash(req, arguments)
	}
	if n.cfg.MaxCost > 0 {
		t.price = n.price(req.Tool)
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.windowOf(req.Tool)
	if wait, full := w.isFull(now); full {
		seconds := math.Ceil(wait.Seconds())
		return t, refusal(req, toolerr.New(toolerr.RateLimited, "limit of %d calls per minute reached; try again in %gs", w.most, seconds).
			With("retryAfterMs", int64(seconds*1000)))
	}
	if n.countsTotals() {
		t.total = n.tallyOf(callerKey{c.AccountName(), "", true}, now)
	}
	if c.ModelTurn != "" || identical > 0 {
		t.turn = n.tallyOf(callerKey{c.AccountName(), c.ModelTurn, false}, now)
	}
	if over := n.limitError(c, t, identical); over != nil {
		return countedCall{}, refusal(req, over)
	}
	if t.total != nil {
		t.total.calls++
		t.total.cost += t.price
	}
	if t.turn != nil {
		t.turn.calls++
		if identical > 0 {
			t.turn.count(t.hash)
		}
	}
	w.add(now)
	return t, nil
}

// limitError returns LIMIT_REACHED if a call would exceed a limit, else nil. n.mu is held.
func (n *counters) limitError(c call.Caller, t countedCall, identical int) *toolerr.Error {
	cfg := n.cfg
	switch {
	case cfg.MaxTotalCalls > 0 && t.total.calls >= cfg.MaxTotalCalls:
		return toolerr.New(toolerr.LimitReached, "all allowed calls (%d) have been made; finish with what you have", cfg.MaxTotalCalls)
	case cfg.MaxCost > 0 && t.total.cost+t.price > cfg.MaxCost*(1+rounding):
		return toolerr.New(toolerr.LimitReached, "it costs %g, and %g of %g are spent (max_cost); finish with what you have", t.price, t.total.cost, cfg.MaxCost)
	case c.ModelTurn != "" && cfg.MaxCallsPerTurn > 0 && t.turn.calls >= cfg.MaxCallsPerTurn:
		return toolerr.New(toolerr.LimitReached, "all calls of this turn (%d) have been made; answer with what you have", cfg.MaxCallsPerTurn)
	case identical > 0 && t.turn.same[t.hash] >= identical:
		return toolerr.New(toolerr.LimitReached, "the same call was made the maximum number of times (%d), and its result is known: change the arguments, or continue without it", identical)
	}
	return nil
}

// rounding corrects sums of floats: ten calls at 0.1 cost 1.
const rounding = 1e-9

// giveBack reverts admit for a call that was not made. The limit per minute still counts
// it.
func (n *counters) giveBack(t countedCall) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t.total != nil {
		t.total.calls--
		t.total.cost -= t.price
	}
	if t.turn != nil {
		t.turn.calls--
		if t.turn.same[t.hash] > 0 {
			t.turn.same[t.hash]--
		}
	}
}

// price returns the price of a call of a tool: that of the longest pattern that matches it;
// 0 if none does.
func (n *counters) price(t *call.Tool) (price float64) {
	longest := -1
	for pattern, is := range n.cfg.Prices {
		if len(pattern) >= longest && matchTool(pattern, t) && (len(pattern) > longest || is > price) {
			longest, price = len(pattern), is
		}
	}
	return price
}

// turnCalls returns the number of permitted calls in the turn of c.
func (n *counters) turnCalls(c call.Caller) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.callers[callerKey{c.AccountName(), c.ModelTurn, false}]; t != nil {
		return t.calls
	}
	return 0
}

// endTurn removes the counters of the turn of c.
func (n *counters) endTurn(c call.Caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.callers, callerKey{c.AccountName(), c.ModelTurn, false})
}

// hash identifies a tool, its arguments and the calling agent: agents do not share
// their results.
func (n *counters) hash(req *call.Request, arguments []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(n.seed)
	h.WriteString(req.Caller.Agent) //nolint:errcheck // never fails
	h.WriteByte(0)                  //nolint:errcheck // never fails
	h.WriteString(req.Tool.Name)    //nolint:errcheck // never fails
	h.WriteByte(0)                  //nolint:errcheck // never fails
	if canonical, ok := jsonrpc.Canonical(nil, arguments); ok {
		arguments = canonical
	}
	h.Write(arguments) //nolint:errcheck // never fails
	return h.Sum64()
}

// tallyOf returns the counters of a caller or turn, new ones if necessary, and records that
// they were used. At maxCallers it forgets others. n.mu is held.
func (n *counters) tallyOf(key callerKey, now time.Time) *callCounts {
	t := n.callers[key]
	if t == nil {
		if len(n.callers) >= maxCallers {
			n.dropOldest()
		}
		t = &callCounts{}
		n.callers[key] = t
	}
	t.last = now
	return t
}

// dropOldest drops the counters of the half of the callers whose last calls are the
// oldest.
func (n *counters) dropOldest() {
	var newest, oldest time.Time
	for _, t := range n.callers {
		if newest.IsZero() || t.last.After(newest) {
			newest = t.last
		}
		if oldest.IsZero() || t.last.Before(oldest) {
			oldest = t.last
		}
	}
	middle := oldest.Add(newest.Sub(oldest) / 2)
	for w, t := range n.callers {
		if !t.last.After(middle) {
			delete(n.callers, w)
		}
	}
}

// count counts a call by the hash of its tool and arguments. Above maxDistinctCalls hashes it
// starts again with none.
func (t *callCounts) count(hash uint64) {
	if t.same == nil || len(t.same) >= maxDistinctCalls {
		t.same = map[uint64]int{}
	}
	t.same[hash]++
}

// windowOf returns the times of the last calls of a tool; nil: the tool has no limit per
// minute.
func (n *counters) windowOf(t *call.Tool) *recentCalls {
	if len(n.cfg.MaxCallsPerMinute) == 0 {
		return nil
	}
	name := t.Name + "\x00" + t.Unrenamed // after a reload the served name can mean another tool
	windows := n.tools
	if t.Unlisted != nil {
		if len(n.unlisted) >= maxUnlisted {
			clear(n.unlisted)
		}
		windows = n.unlisted
	}
	w, known := windows[name]
	if known {
		return w
	}
	for pattern, most := range n.cfg.MaxCallsPerMinute {
		if most > 0 && matchTool(pattern, t) && (w == nil || most < w.most) {
			w = &recentCalls{most: most}
		}
	}
	windows[name] = w
	return w
}

// isFull reports whether the limit of calls in a minute is reached, and how long until
// another call is permitted.
func (w *recentCalls) isFull(now time.Time) (time.Duration, bool) {
	if w == nil || len(w.times) < w.most {
		return 0, false
	}
	wait := w.times[w.next].Add(time.Minute).Sub(now)
	return wait, wait > 0
}

// add records a call at a time; the oldest of more than w.most calls is forgotten. With a
// nil window it does nothing.
func (w *recentCalls) add(now time.Time) {
	switch {
	case w == nil:
	case len(w.times) < w.most:
		w.times = append(w.times, now)
	default:
		w.times[w.next] = now
		w.next = (w.next + 1) % w.most
	}
}
