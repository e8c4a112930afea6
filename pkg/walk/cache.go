package walk

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Cache remembers what is in directories, so that a later walk of a tree that
// did not change need not read them again. It is safe for concurrent use by
// any number of walks.
//
// A directory is known by device and inode and taken to be unchanged while
// its modification and change times are the same, to the nanosecond: adding,
// removing and renaming an entry sets both. One that was changed less than
// two seconds before it was read is not remembered, since a further change
// could leave the same times, and neither is one on a file system whose times
// are not this machine's own doing (networks, FUSE). What is in an entry, and
// the ignore files, are not remembered.
type Cache struct {
	max   int           // bytes of either generation
	grain time.Duration // unsettled, but for tests
	walks atomic.Int64

	mu         sync.Mutex
	young, old map[cacheKey]*listing // generations: what is used moves to the young one
	size       int                   // bytes of the young one
	rest       int                   // bytes of the old one
	local      map[uint64]bool       // by device
}

type cacheKey struct {
	dev, ino uint64
	prefix   string // what the names begin with
}

// listing is a directory's sorted entries, which nobody changes.
type listing struct {
	mtime, ctime time.Time
	entries      []sandbox.DirEntry
	size         int // estimated bytes, the maps' share included
	memo         Memo
}

// Memo is where a visitor keeps what it found out about the entries of a
// directory, for the next walk that finds the directory unchanged. What it
// keeps goes when the cache forgets the directory. It is safe for concurrent
// use.
type Memo struct {
	size int
	kept atomic.Value
}

// Len is the number of entries in the directory.
func (m *Memo) Len() int { return m.size }

// Kept returns what is kept, always of one type; nil at first.
func (m *Memo) Kept() any { return m.kept.Load() }

// Keep keeps v unless something is kept, and returns what is. It should not
// take more than 8 bytes an entry.
func (m *Memo) Keep(v any) any {
	m.kept.CompareAndSwap(nil, v)
	return m.kept.Load()
}

// unsettled is how recent a change may leave room for another with the same
// times: the coarsest grain of the times of a local file system.
const unsettled = 2 * time.Second

// NewCache returns a cache that takes about maxBytes at most, and then forgets
// what was not used for longest.
func NewCache(maxBytes int) *Cache {
	return &Cache{max: maxBytes / 2, grain: unsettled, young: make(map[cacheKey]*listing), local: make(map[uint64]bool)}
}

// get returns what is remembered of the version of a directory that st
// describes, or nil.
func (c *Cache) get(st *sandbox.Stat, prefix string) *listing {
	key := cacheKey{st.Dev, st.Ino, prefix}
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.young[key]
	if !ok {
		if l, ok = c.old[key]; !ok {
			return nil
		}
		c.leave(key)
		c.keep(key, l)
	}
	if !l.mtime.Equal(st.ModTime) || !l.ctime.Equal(st.ChangeTime) {
		c.size -= l.size
		delete(c.young, key)
		return nil
	}
	return l
}

// put remembers the entries of a directory, all of them and sorted. st was
// taken before they were read, and now before that. It returns nil if it does
// not.
func (c *Cache) put(dir *sandbox.Dir, st *sandbox.Stat, now time.Time, prefix string, entries []sandbox.DirEntry) *listing {
	newest := st.ModTime
	if st.ChangeTime.After(newest) {
		newest = st.ChangeTime
	}
	if st.Ino == 0 || st.ChangeTime.IsZero() || now.Sub(newest) < c.grain || !c.trusts(dir, st.Dev) {
		return nil
	}
	const each, overhead = 24 + 8, 200
	l := &listing{mtime: st.ModTime, ctime: st.ChangeTime, entries: slices.Clone(entries), size: overhead + 2*len(prefix), memo: Memo{size: len(entries)}}
	for i := range entries {
		l.size += each + len(entries[i].Name)
	}
	if l.size > c.max {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{st.Dev, st.Ino, prefix}
	if before, ok := c.young[key]; ok {
		c.size -= before.size
		delete(c.young, key)
	}
	c.leave(key)
	c.keep(key, l)
	return l
}

// leave takes what is there out of the old generation; callers hold the lock.
func (c *Cache) leave(key cacheKey) {
	if l, ok := c.old[key]; ok {
		c.rest -= l.size
		delete(c.old, key)
	}
}

// Size is about how many bytes are taken.
func (c *Cache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size + c.rest
}

// keep adds to the young generation, which becomes the old one when it is
// full; callers hold the lock.
func (c *Cache) keep(key cacheKey, l *listing) {
	if c.size+l.size > c.max {
		c.old, c.rest = c.young, c.size
		c.young, c.size = make(map[cacheKey]*listing, len(c.young)), 0
	}
	c.young[key] = l
	c.size += l.size
}

// trusts reports whether the times of directories on a device tell of every
// change.
func (c *Cache) trusts(dir *sandbox.Dir, dev uint64) bool {
	c.mu.Lock()
	local, known := c.local[dev]
	c.mu.Unlock()
	if known {
		return local
	}
	local = dir.Local()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local[dev] = local
	return local
}
