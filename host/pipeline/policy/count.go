package policy

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxCallers bounds the callers, and turns, whose calls are counted.
	maxCallers = 4096
	// maxDifferent bounds the different calls that are remembered of each.
	maxDifferent = 1024
)

// counters count the calls that were let through.
type counters struct {
	cfg  Config
	seed maphash.Seed

	mu      sync.Mutex
	tools   map[string]*window // nil: not limited
	callers map[who]*tally
}

// who is a caller, or a turn of one.
type who struct {
	door, id, turn string
	all            bool // all its turns together
}

// tally is what is counted of a caller or turn.
type tally struct {
	calls int
	same  map[uint64]int // by hash of tool and arguments
	last  time.Time
}

// window is the times of a tool's last calls, a ring.
type window struct {
	most  int
	times []time.Time
	next  int
}

func newCounters(c Config) *counters {
	return &counters{cfg: c, seed: maphash.MakeSeed(), tools: map[string]*window{}, callers: map[who]*tally{}}
}

func (n *counters) any() bool {
	return len(n.cfg.MaxCallsPerMinute) > 0 || n.cfg.MaxCallsPerTurn > 0 || n.cfg.MaxTotalCalls > 0 || n.cfg.MaxIdenticalCalls > 0
}

// admit counts a call, or says which limit it is over; then nothing is
// counted.
func (n *counters) admit(req *call.Request) error {
	if !n.any() {
		return nil
	}
	var hash uint64
	if n.cfg.MaxIdenticalCalls > 0 {
		arguments, err := req.Arguments()
		if err != nil {
			return err
		}
		hash = n.hash(req.Tool.Name, arguments)
	}
	now := time.Now()
	c := req.Caller
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.window(req.Tool.Name)
	if wait, full := w.full(now); full {
		seconds := math.Ceil(wait.Seconds())
		return refusal(req, toolerr.New(toolerr.RateLimited, "at most %d calls a minute are allowed; try again in %gs", w.most, seconds).
			With("retryAfterMs", int64(seconds*1000)))
	}
	var total, turn *tally
	if n.cfg.MaxTotalCalls > 0 {
		if total = n.tally(who{c.Door, c.ID, "", true}, now); total.calls >= n.cfg.MaxTotalCalls {
			return refusal(req, toolerr.New(toolerr.LimitReached, "all %d calls have been made that are allowed; finish with what there is", n.cfg.MaxTotalCalls))
		}
	}
	if c.Turn != "" && n.cfg.MaxCallsPerTurn > 0 || n.cfg.MaxIdenticalCalls > 0 {
		turn = n.tally(who{c.Door, c.ID, c.Turn, false}, now)
		if c.Turn != "" && n.cfg.MaxCallsPerTurn > 0 && turn.calls >= n.cfg.MaxCallsPerTurn {
			return refusal(req, toolerr.New(toolerr.LimitReached, "all %d calls of this turn have been made; answer with what there is", n.cfg.MaxCallsPerTurn))
		}
		if n.cfg.MaxIdenticalCalls > 0 && turn.same[hash] >= n.cfg.MaxIdenticalCalls {
			return refusal(req, toolerr.New(toolerr.LimitReached, "the same call has been made %d times; its result is known, change the arguments or go on without it", n.cfg.MaxIdenticalCalls))
		}
		turn.calls++
		if n.cfg.MaxIdenticalCalls > 0 {
			turn.count(hash)
		}
	}
	if total != nil {
		total.calls++
	}
	w.add(now)
	return nil
}

func (n *counters) hash(tool string, arguments []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(n.seed)
	h.WriteString(tool) //nolint:errcheck // never fails
	h.WriteByte(0)      //nolint:errcheck // never fails
	h.Write(arguments)  //nolint:errcheck // never fails
	return h.Sum64()
}

func (n *counters) tally(w who, now time.Time) *tally {
	t := n.callers[w]
	if t == nil {
		if len(n.callers) >= maxCallers {
			n.forget()
		}
		t = &tally{}
		n.callers[w] = t
	}
	t.last = now
	return t
}

// forget drops the half of the callers that has not called for longest.
func (n *counters) forget() {
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

func (t *tally) count(hash uint64) {
	if t.same == nil || len(t.same) >= maxDifferent {
		t.same = map[uint64]int{}
	}
	t.same[hash]++
}

// window returns the calls of a tool; nil: it has no limit.
func (n *counters) window(tool string) *window {
	if len(n.cfg.MaxCallsPerMinute) == 0 {
		return nil
	}
	w, known := n.tools[tool]
	if known {
		return w
	}
	for pattern, most := range n.cfg.MaxCallsPerMinute {
		if most > 0 && match(pattern, tool) && (w == nil || most < w.most) {
			w = &window{most: most}
		}
	}
	n.tools[tool] = w
	return w
}

// full reports whether there were as many calls as there may be in a minute,
// and when there will be room.
func (w *window) full(now time.Time) (time.Duration, bool) {
	if w == nil || len(w.times) < w.most {
		return 0, false
	}
	wait := w.times[w.next].Add(time.Minute).Sub(now)
	return wait, wait > 0
}

func (w *window) add(now time.Time) {
	switch {
	case w == nil:
	case len(w.times) < w.most:
		w.times = append(w.times, now)
	default:
		w.times[w.next] = now
		w.next = (w.next + 1) % w.most
	}
}
