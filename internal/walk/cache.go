package walk

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Cache keeps the entries of directories, so that a later walk of an unchanged
// tree need not read them again. Any number of walks may use it concurrently.
//
// A directory is identified by device and inode. It counts as unchanged while
// its modification and change times are equal to the nanosecond: adding,
// removing or renaming an entry sets both. The cache does not keep a directory
// changed less than two seconds before it was read, since a further change
// could leave the same times, nor one on a file system whose times another
// machine or program sets (networks, FUSE). It keeps neither the content of
// entries nor ignore files.
type Cache struct {
	maxGenerationBytes int           // bound of each generation
	grain              time.Duration // settleTime, except in tests
	walks              atomic.Int64  // walks that use the cache

	mu         sync.Mutex
	young, old map[cacheKey]*listing // generations: an entry moves to young when it is used
	youngBytes int                   // bytes of young
	oldBytes   int                   // bytes of old
	reliable   map[uint64]bool       // by device: whether its times can be trusted
}

// cacheKey identifies a listing: the directory, and the prefix of the names in
// it.
type cacheKey struct {
	dev, ino uint64
	prefix   string // of the names
}

// listing holds the sorted entries of a directory. It is immutable, except for
// memo.
type listing struct {
	mtime, ctime time.Time
	entries      []sandbox.DirEntry
	size         int // estimated bytes, including the share of the maps
	memo         Memo
}

// Memo stores a visitor's result about the entries of a directory, for the next
// walk that finds the directory unchanged. It is lost when the cache drops the
// directory. It is safe for concurrent use.
type Memo struct {
	size  int // entries of the directory
	value atomic.Value
}

// EntryCount returns the number of entries in the directory.
func (m *Memo) EntryCount() int { return m.size }

// Value returns the stored value, or nil if none has been stored yet.
func (m *Memo) Value() any { return m.value.Load() }

// StoreIfEmpty stores v unless a value is stored already, and returns the
// stored value. All values must have the same type. A value should take at most
// 8 bytes an entry.
func (m *Memo) StoreIfEmpty(v any) any {
	m.value.CompareAndSwap(nil, v)
	return m.value.Load()
}

// settleTime is the time after a change in which another change could leave the
// same times: the coarsest resolution of a local file system.
const settleTime = 2 * time.Second

// NewCache returns a cache of at most about maxBytes. When it is full, it drops
// the listings that were not used for the longest time.
func NewCache(maxBytes int) *Cache {
	return &Cache{maxGenerationBytes: maxBytes / 2, grain: settleTime, young: make(map[cacheKey]*listing), reliable: make(map[uint64]bool)}
}

// get returns the listing of the directory with the state st, or nil if it is
// not cached or the directory has changed. The listing becomes young.
func (c *Cache) get(st *sandbox.Stat, prefix string) *listing {
	key := cacheKey{st.Dev, st.Ino, prefix}
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.young[key]
	if !ok {
		if l, ok = c.old[key]; !ok {
			return nil
		}
		c.removeOld(key)
		c.addYoung(key, l)
	}
	if !l.mtime.Equal(st.ModTime) || !l.ctime.Equal(st.ChangeTime) {
		c.youngBytes -= l.size
		delete(c.young, key)
		return nil
	}
	return l
}

// put caches the entries of a directory, which must be all and sorted, and
// returns the listing. st was taken before they were read, and now before st.
// It returns nil if it did not cache them: they are too large, were changed a
// moment ago, or the times of the file system are not reliable.
func (c *Cache) put(dir *sandbox.Dir, st *sandbox.Stat, now time.Time, prefix string, entries []sandbox.DirEntry) *listing {
	newest := st.ModTime
	if st.ChangeTime.After(newest) {
		newest = st.ChangeTime
	}
	if st.Ino == 0 || st.ChangeTime.IsZero() || now.Sub(newest) < c.grain || !c.areTimesReliable(dir, st.Dev) {
		return nil
	}
	const each, overhead = 24 + 8, 200
	l := &listing{mtime: st.ModTime, ctime: st.ChangeTime, entries: slices.Clone(entries), size: overhead + 2*len(prefix), memo: Memo{size: len(entries)}}
	for i := range entries {
		l.size += each + len(entries[i].Name)
	}
	if l.size > c.maxGenerationBytes {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{st.Dev, st.Ino, prefix}
	if before, ok := c.young[key]; ok {
		c.youngBytes -= before.size
		delete(c.young, key)
	}
	c.removeOld(key)
	c.addYoung(key, l)
	return l
}

// removeOld removes a listing from the old generation. The caller holds mu.
func (c *Cache) removeOld(key cacheKey) {
	if l, ok := c.old[key]; ok {
		c.oldBytes -= l.size
		delete(c.old, key)
	}
}

// Size returns the approximate size of the cache in bytes.
func (c *Cache) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.youngBytes + c.oldBytes
}

// addYoung adds a listing to the young generation. If that is full, it first
// becomes the old one. The caller holds mu.
func (c *Cache) addYoung(key cacheKey, l *listing) {
	if c.youngBytes+l.size > c.maxGenerationBytes {
		c.old, c.oldBytes = c.young, c.youngBytes
		c.young, c.youngBytes = make(map[cacheKey]*listing, len(c.young)), 0
	}
	c.young[key] = l
	c.youngBytes += l.size
}

// areTimesReliable reports whether the times of directories on the device of dir
// show every change: the file system is local.
func (c *Cache) areTimesReliable(dir *sandbox.Dir, dev uint64) bool {
	c.mu.Lock()
	local, known := c.reliable[dev]
	c.mu.Unlock()
	if known {
		return local
	}
	local = dir.IsLocal()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reliable[dev] = local
	return local
}
