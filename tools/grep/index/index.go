// Package index stores, in bounded memory, enough of each file's content to
// tell that a pattern cannot match it, so that a later search need not read the
// file.
//
//	x := index.New(128 << 20)
//	q := index.NewQuery(matcher.RequiredLiterals()) // once a search; nil is fine
//	switch x.Lookup(index.KeyOf(stat), q) {   // for each file, before it is opened
//	case index.Missing, index.Binary:       // need not be read
//	}
//
// DirLookup does the same for a whole directory, and faster.
//
// A Builder fills the index in the background; Add adds one file.
//
// # Stored data
//
// For each file, the index stores a Bloom filter of its sequences of three and
// of four bytes, in lower case (ASCII), so that one filter serves searches with
// and without case. U+212A and U+017F, which fold to k and s, are stored both
// unchanged and as these letters. Literals of less than three bytes require
// nothing.
//
// If memory allows, it also stores the text of small files that matched
// recently: the next search often is a narrower one of the same files.
//
// Measured on the Go distribution (15 036 files, 126 MB of text, 400 words of
// it): 1 740 bytes a file; looking up all files takes 1.7 ms, reading and
// adding them 0.75 s. For words that are in 0.23 % of the files, 0.38 % must be
// read; for words in 6.1 %, 6.7 %. Grams of three bytes alone left 1.3 % and
// 10.4 %, and still 1.0 % and 9.9 % without any false positive, as lists that
// take four times the memory: grams of four bytes add information that more
// bits cannot. Bitmaps of two bytes left 10 % and 30 %; xor filters save a
// tenth of the bits, but building them takes longer than reading the files.
//
// Nothing is stored on disk. Loading a saved index took 37 ms, which with a
// warm search is little less than the first search without an index. The saved
// files would copy content of files that may be denied later, and a clock set
// back or a reused device number would go unnoticed.
//
// # Validity
//
// The index never returns Missing for content that it has not seen. A file is
// identified by device, inode, size, and modification and change time in
// nanoseconds. It is added only if both times are at least Settled (two
// seconds) before it was read, so that any later change gives another change
// time, even if the file system counts whole seconds or pairs of them. Setting
// the modification time back has no effect, since that changes the change time;
// a new file in a reused inode has a new one. A file without device or inode
// (on systems that lack them) is never added.
//
// This relies on the kernel stamping every change by the clock that gives the
// time of reading, and on that clock not going back. Each search begins by
// checking whether the clock was set back, and then drops everything. The index
// cannot see changes that no stat shows:
//
//   - A program that keeps writing through a shared mapping stamps the file
//     at its first store and then once after each time the kernel wrote the
//     pages back (every 30 s or so; in a file system in memory, never).
//   - A network file system may show a client the old stat for some seconds
//     (NFS: acregmax), and stamps by the server's clock: two changes within
//     one tick of a server that is behind by more than two seconds look the
//     same.
//   - Block devices written to behind the file system's back.
//
// For such files, search without an index; sandbox.Dir.Local detects file
// systems whose stat is unreliable.
//
// # Bounds
//
// The limit given to New covers filters, entries, the worst case of the maps,
// and texts. Texts take up to a third of it, at most 40 MiB, as long as filters
// do not need it; the garbage collector's reserve is extra. At the limit, the
// files that were not looked up for the most searches are dropped. The files of
// the latest search are kept: of a tree too large for the index, a part stays
// known, instead of each search dropping the files that the next needs first.
package index

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Settled is the minimum time between a file's last change and its reading: the
// coarsest resolution of file systems' times.
const Settled = 2 * time.Second

// Key identifies one version of one file.
type Key struct {
	Dev, Ino            uint64 // device and inode number; 0 on systems that lack them
	Size                int64  // bytes
	ModTime, ChangeTime int64  // nanoseconds
}

// KeyOf returns the key of a file with the status st.
func KeyOf(st sandbox.Stat) Key {
	return Key{st.Dev, st.Ino, st.Size, st.ModTime.UnixNano(), st.ChangeTime.UnixNano()}
}

// hasIdentity reports whether k identifies a file. It does not without a device
// or inode number.
func (k Key) hasIdentity() bool { return k.Dev != 0 && k.Ino != 0 }

// isSettledBefore reports whether every change of the file after taken must alter
// the key.
func (k Key) isSettledBefore(taken time.Time) bool {
	latest := taken.Add(-Settled).UnixNano()
	return k.ChangeTime < latest && k.ModTime < latest
}

// shardCount is the number of separately locked parts. It exceeds the number of
// workers, so that they seldom wait for each other.
const shardCount = 64

// Index holds the filters of files. It is safe for concurrent use.
type Index struct {
	maxBytes  int64
	shards    [shardCount]shard
	refs      refs
	texts     texts
	usedBytes atomic.Int64 // accounted memory, without texts
	// search is the number of the latest search. Each entry stores the last
	// search that looked it up.
	search atomic.Uint32
	// fullSearch is the search in which no older entry was left to drop.
	fullSearch atomic.Uint32
	evicting   sync.Mutex // held while entries are dropped
	gramsPool  sync.Pool  // of *grams
	resultPool sync.Pool  // of *[]lookResult
	clock      clock
}

// shard is a part of the index with its own lock.
type shard struct {
	mu    sync.RWMutex
	files map[inode]*entry // by inode
	_     [64]byte         // keeps the next shard's lock on another cache line
}

// New returns an index that takes at most maxBytes of memory. At the limit it
// drops the least recently used files.
func New(maxBytes int64) *Index {
	x := &Index{maxBytes: maxBytes}
	x.texts.maxBytes, x.texts.kept = min(maxBytes/textShare, maxTexts), map[*entry]*text{}
	for i := range x.shards {
		x.shards[i].files = map[inode]*entry{}
	}
	x.gramsPool.New = func() any { return new(grams) }
	x.search.Store(1)
	x.clock.start(time.Now())
	return x
}

// Stats returns the number of indexed files and the memory accounted to them in
// bytes, without texts.
func (x *Index) Stats() (files int, bytes int64) {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		files += len(s.files)
		s.mu.RUnlock()
	}
	return files, x.usedBytes.Load()
}

// Size returns the accounted memory in bytes, including texts.
func (x *Index) Size() int64 { return x.usedBytes.Load() + x.texts.size() }

// Verdict is the index's knowledge about a file and a query.
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // not indexed: read the file
	Maybe                  // the required literals may be in it: read the file
	Missing                // a required literal is not in it
	Binary                 // the file is binary
)

// Lookup returns the verdict on a version of a file. With a nil query it never
// returns Missing.
func (x *Index) Lookup(k Key, q *Query) Verdict {
	verdict, _ := x.lookup(k, q)
	return verdict
}

// lookup returns the verdict of Lookup and the entry of the version k of the file,
// nil if it is not indexed.
func (x *Index) lookup(k Key, q *Query) (Verdict, *entry) {
	search := x.searchNumber(q)
	e := x.find(k)
	if e == nil {
		return Unknown, nil
	}
	e.markUsed(search)
	return e.verdictFor(q == nil || q.mayBeIn(e.filter)), e
}

// searchNumber returns the number of the search to which q belongs; of the
// latest search if q is nil.
func (x *Index) searchNumber(q *Query) uint32 {
	if q != nil {
		return q.beginOnce(x)
	}
	return x.search.Load()
}

// shardOf returns the shard for the file with key k.
func (x *Index) shardOf(k Key) *shard {
	// Inodes of one directory are often consecutive; devices are few.
	h := (k.Ino ^ k.Dev<<32) * 0x9E3779B97F4A7C15
	return &x.shards[h>>58]
}

// find returns the entry with key k, or nil.
func (x *Index) find(k Key) *entry {
	s := x.shardOf(k)
	s.mu.RLock()
	e := s.files[inode{k.Dev, k.Ino}]
	s.mu.RUnlock()
	if e == nil || !e.hasKey(k) {
		return nil
	}
	return e
}

// Add adds a file's text, decoded as for a search; nil with binary set for a
// binary file. k is from a stat of the open file before the reading, and taken
// a time before that stat. The file is not added unless its times are settled
// before taken. Any later change, even during the reading, gives the file
// another key, so that k does not occur again.
func (x *Index) Add(k Key, taken time.Time, text []byte, binary bool) {
	_ = x.add(Content{Key: k, Taken: taken, Text: text, Binary: binary}, func() error { return nil })
}

// add adds a file as Add does, and calls pause between pieces of a large text. It
// returns pause's error, and then adds nothing.
func (x *Index) add(c Content, pause func() error) error {
	k := c.Key
	if !k.hasIdentity() || !k.isSettledBefore(c.Taken) {
		return nil
	}
	if e := x.find(k); e != nil {
		e.markUsed(x.search.Load())
		return nil
	}
	e := &entry{Key: k}
	switch {
	case c.Opaque:
		e.verdict = Maybe
	case c.Binary:
		e.verdict = Binary
	default:
		g := x.gramsPool.Get().(*grams)
		defer x.gramsPool.Put(g)
		defer g.clear()
		if err := g.addText(c.Text, pause); err != nil {
			return err
		}
		if g.isSaturated() {
			e.verdict = Maybe
		} else {
			e.verdict, e.filter = Missing, g.newFilter()
		}
	}
	e.used.Store(x.search.Load())
	if !x.reserve(e.cost()) {
		return nil
	}
	s := x.shardOf(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.files[inode{k.Dev, k.Ino}]; old != nil {
		x.removeAccounts(old)
	}
	x.refs.add(e)
	s.files[inode{k.Dev, k.Ino}] = e
	return nil
}

// removeAccounts removes an entry from the accounted memory, from refs and
// texts. The caller has removed it from its shard.
func (x *Index) removeAccounts(e *entry) {
	x.usedBytes.Add(-e.cost())
	x.refs.remove(e)
	x.texts.drop(e)
}
