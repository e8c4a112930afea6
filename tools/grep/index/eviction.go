package index

import (
	"slices"
	"time"
)

// beginSearch begins a new search and returns its number. It drops everything
// if the clock was set back.
func (x *Index) beginSearch() uint32 {
	if x.clock.hasGoneBack(time.Now()) {
		x.clear()
	}
	return x.search.Add(1)
}

// sampleFilters returns up to n filters.
func (x *Index) sampleFilters(n int) []filter {
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

// clear drops all files.
func (x *Index) clear() {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for _, e := range s.files {
			x.removeAccounts(e)
		}
		s.files = map[inode]*entry{}
		s.mu.Unlock()
	}
}

// reserve adds bytes to the accounted memory, and drops older entries if
// necessary. It returns false, without adding them, if they are too many or if
// only entries of the latest search could be dropped for them.
func (x *Index) reserve(bytes int64) bool {
	if bytes > x.maxBytes/4 {
		return false // not worth the entries that it would displace
	}
	now := x.usedBytes.Add(bytes)
	if now+x.texts.size() > x.maxBytes {
		x.texts.clear() // a filter saves more reading than a text
	}
	if now <= x.maxBytes || x.evict() {
		return true
	}
	x.usedBytes.Add(-bytes)
	return false
}

// hasRoom reports whether files can still be added in this search.
func (x *Index) hasRoom() bool { return x.fullSearch.Load() != x.search.Load() }

// evict drops the least recently used entries until the index is within its
// limit. Since it visits all entries, it drops more than necessary. It returns
// false if the entries of earlier searches were not enough.
func (x *Index) evict() bool {
	x.evicting.Lock()
	defer x.evicting.Unlock()
	over := x.usedBytes.Load() - x.maxBytes
	if over <= 0 {
		return true
	}
	latest := x.search.Load()
	if x.fullSearch.Load() == latest {
		return false
	}
	last, some := x.evictionLimit(over+x.maxBytes/16, latest)
	if !some {
		x.fullSearch.Store(latest)
		return false
	}
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		for id, e := range s.files {
			if e.used.Load() <= last && x.usedBytes.Load() > x.maxBytes-x.maxBytes/16 {
				delete(s.files, id)
				x.removeAccounts(e)
			}
		}
		s.mu.Unlock()
	}
	return x.usedBytes.Load() <= x.maxBytes
}

// evictionLimit returns the last search before latest whose entries, with those
// of all earlier searches, must be dropped to free want bytes. ok is false if
// there is no search before latest.
func (x *Index) evictionLimit(want int64, latest uint32) (last uint32, ok bool) {
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
		last, ok = search, true
		want -= held[search]
	}
	return last, ok
}
