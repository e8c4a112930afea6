package index

import (
	"slices"
	"sync"
	"time"
)

// begin counts a new search.
func (x *Index) begin() uint32 {
	if x.clock.wentBack(time.Now()) {
		x.clear()
	}
	return x.search.Add(1)
}

// sample returns the filters of some files.
func (x *Index) sample(n int) []filter {
	var filters []filter
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		few := 1 + n/shardCount
		for _, e := range s.files {
			if few == 0 || len(filters) == n {
				break
			}
			if len(e.filter) > 0 {
				filters = append(filters, e.filter)
				few--
			}
		}
		s.mu.RUnlock()
	}
	return filters
}

// clear forgets everything.
func (x *Index) clear() {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for _, e := range s.files {
			x.forget(e)
		}
		s.files = map[inode]*entry{}
		s.mu.Unlock()
	}
}

// reserve accounts for bytes more, and reports false (and does not) if there
// is no room but what the latest search looked at.
func (x *Index) reserve(bytes int64) bool {
	if bytes > x.max/4 {
		return false // not worth what it would push out
	}
	now := x.bytes.Add(bytes)
	if now+x.texts.size() > x.max {
		x.texts.clear() // a filter spares more reading than a text
	}
	if now <= x.max || x.evict() {
		return true
	}
	x.bytes.Add(-bytes)
	return false
}

// hasRoom reports whether a file may still be taken up in this search.
func (x *Index) hasRoom() bool { return x.full.Load() != x.search.Load() }

// evict forgets what was not looked at for the longest, some more than there
// is need for: it goes through all entries. It reports whether what is left
// is within the bound.
func (x *Index) evict() bool {
	x.evicting.Lock()
	defer x.evicting.Unlock()
	over := x.bytes.Load() - x.max
	if over <= 0 {
		return true
	}
	latest := x.search.Load()
	if x.full.Load() == latest {
		return false
	}
	last, some := x.oldest(over+x.max/16, latest)
	if !some {
		x.full.Store(latest)
		return false
	}
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for id, e := range s.files {
			if e.used.Load() <= last && x.bytes.Load() > x.max-x.max/16 {
				delete(s.files, id)
				x.forget(e)
			}
		}
		s.mu.Unlock()
	}
	return x.bytes.Load() <= x.max
}

// oldest returns the last search before latest whose entries, with all
// before, must go to free want bytes.
func (x *Index) oldest(want int64, latest uint32) (last uint32, some bool) {
	held := map[uint32]int64{}
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		for _, e := range s.files {
			held[e.used.Load()] += e.cost()
		}
		s.mu.RUnlock()
	}
	searches := make([]uint32, 0, len(held))
	for search := range held {
		searches = append(searches, search)
	}
	slices.Sort(searches)
	for _, search := range searches {
		if search >= latest || want <= 0 {
			break
		}
		last, some = search, true
		want -= held[search]
	}
	return last, some
}

// clock notices that the wall clock, which files are stamped by, was set
// back.
type clock struct {
	mu    sync.Mutex
	first time.Time
	ahead time.Duration // of the wall clock before the monotonic one, since first
}

func (c *clock) start(now time.Time) { c.first = now }

// wentBack reports whether the clock was set back since it was asked last. A
// second is left to those who adjust it smoothly.
func (c *clock) wentBack(now time.Time) bool {
	return c.steppedBack(now.Round(0).Sub(c.first.Round(0)), now.Sub(c.first))
}

func (c *clock) steppedBack(wall, monotonic time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.ahead
	c.ahead = wall - monotonic
	return c.ahead < before-time.Second
}
