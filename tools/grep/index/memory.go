package index

import (
	"slices"
	"time"
)

// begin starts a new search and returns its number.
func (x *Index) begin() uint32 {
	if x.clock.wentBack(time.Now()) {
		x.clear()
	}
	return x.search.Add(1)
}

// sample returns up to n filters.
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

// clear drops everything.
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

// reserve accounts for further bytes. It reports false, without doing so, if
// only entries of the latest search could be dropped for them.
func (x *Index) reserve(bytes int64) bool {
	if bytes > x.max/4 {
		return false // not worth the entries that it would displace
	}
	now := x.bytes.Add(bytes)
	if now+x.texts.size() > x.max {
		x.texts.clear() // a filter saves more reading than a text
	}
	if now <= x.max || x.evict() {
		return true
	}
	x.bytes.Add(-bytes)
	return false
}

// hasRoom reports whether files may still be added in this search.
func (x *Index) hasRoom() bool { return x.full.Load() != x.search.Load() }

// evict drops the least recently used entries. Since it visits all entries, it
// drops more than necessary. It reports whether the index is within its limit
// again.
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

// oldest returns the last search before latest whose entries, with those of all
// earlier searches, must be dropped to free want bytes. some is false if there
// is no such search.
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
