// Package index remembers, in bounded memory, enough of each file's content to
// tell that a pattern cannot be in it, so that a later search need not read
// it.
//
//	x := index.New(128 << 20)
//	q := index.NewQuery(matcher.Required()) // once a search; nil is fine
//	switch x.Look(index.KeyOf(stat), q) {   // for each file, before it is opened
//	case index.Missing, index.Binary:       // need not be read
//	}
//
// Ahead does the same for a directory at a time, and faster.
//
// A Builder fills it behind the answers; Add takes up one file.
//
// # What is kept
//
// For each file a Bloom filter of the sequences of three and of four bytes in
// it, in lower case (ASCII), so that one filter serves searches with and
// without case. U+212A and U+017F, which fold to k and s, are taken up as
// themselves and as these letters. Literals of less than three bytes require
// nothing.
//
// Where there is room, also the text of small files that have matched lately:
// the next search often is a narrower one of the same.
//
// Measured on the Go distribution (15 036 files, 126 MB of text, 400 words
// of it): 1 740 bytes a file; looking all files up takes 1.7 ms, taking them
// up with their reading 0.75 s. Where a word is in 0.23 % of the files, 0.38 %
// are left to read, and 6.7 % for 6.1 %. Threes alone left 1.3 % and 10.4 %,
// and without any false positive, as lists at four times the memory, still
// 1.0 % and 9.9 %: what they lack is not bits but what fours know. Bitmaps of
// twos left 10 % and 30 %; xor filters save a tenth of the bits and cost more
// to build than the reading.
//
// Nothing is kept on disk. Loading a saved index took 37 ms, which with a
// warm search is little less than the first search without one; the files
// would be a copy of what is in files that may since be denied, and neither a
// clock set back nor a device number given anew would be noticed.
//
// # When it is believed
//
// It never says Missing of content that it has not seen. A file is known by
// device, inode, size, and modification and change time in nanoseconds; it is
// taken up only if both times lie Settled (two seconds) before it was read,
// so that whatever changes it later gets another change time, even where
// these are counted in whole seconds or pairs of them. Setting the
// modification time back helps nothing, since that changes the change time;
// a new file in a freed inode has a new one. What comes without device or
// inode (systems that have none) is never taken up.
//
// This rests on the kernel stamping every change by the clock that the time
// of reading is taken from, and that clock not going back. When it was set
// back, which is looked for at the beginning of each search, everything is
// forgotten. What no stat can show, the index cannot see either:
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
// Who has such files searches without an index; sandbox.Dir.Local tells of
// file systems whose stat is not to be relied on.
//
// # Bounds
//
// New's bound counts filters, entries, what the maps take at worst, and texts,
// which have up to a third of it, 36 MiB at the most, as long as filters do
// not need it; the collector's own reserve comes on top. When it is reached, what was not
// looked at for the most searches goes. What the latest search looked at
// stays: a tree too large for the index keeps a part of its files known,
// rather than each pass pushing out what the next one needs first.
package index

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Settled is how long before its reading a file must have been changed last
// to be taken up: the coarsest step in which file systems count time.
const Settled = 2 * time.Second

// Key names one version of one file.
type Key struct {
	Dev, Ino            uint64
	Size                int64
	ModTime, ChangeTime int64 // nanoseconds
}

// KeyOf returns the key of a file as st describes it.
func KeyOf(st sandbox.Stat) Key {
	return Key{st.Dev, st.Ino, st.Size, st.ModTime.UnixNano(), st.ChangeTime.UnixNano()}
}

// names reports whether k can stand for a file at all.
func (k Key) names() bool { return k.Dev != 0 && k.Ino != 0 }

// settled reports whether any change after taken shows in the key.
func (k Key) settled(taken time.Time) bool {
	latest := taken.Add(-Settled).UnixNano()
	return k.ChangeTime < latest && k.ModTime < latest
}

// shardCount is the number of separately locked parts; more than there are
// walkers, so that they seldom meet.
const shardCount = 64

// Index holds the filters of files. It is safe for concurrent use.
type Index struct {
	max    int64
	shards [shardCount]shard
	refs   refs
	texts  texts
	bytes  atomic.Int64
	// search counts the searches; entries carry the count of the last one
	// that looked at them.
	search atomic.Uint32
	// full is the search at which nothing older was left to make room.
	full     atomic.Uint32
	evicting sync.Mutex
	scratch  sync.Pool // of *grams
	spaces   sync.Pool // of *[]known
	clock    clock
}

type shard struct {
	mu    sync.RWMutex
	files map[inode]*entry
	_     [64]byte // the next shard's lock is in another cache line
}

type inode struct{ dev, ino uint64 }

// entry is one version of a file; all but used is never changed.
type entry struct {
	Key
	filter  filter
	verdict Verdict // Missing: ask the filter; else what Look says
	ref     uint32
	used    atomic.Uint32
}

// entryCost is what an entry takes beside its filter: itself, its reference,
// and a slot in a map that has just grown.
const entryCost = 80 + 16 + 64

func (e *entry) cost() int64 { return entryCost + 8*int64(len(e.filter)) }

func (e *entry) is(k Key) bool { return e.Key == k }

// verdictFor is what Look says; may is the filter's answer.
func (e *entry) verdictFor(may bool) Verdict {
	if e.verdict == Missing && may {
		return Maybe
	}
	return e.verdict
}

// touch notes the use. Most calls find it noted, and write nothing that other
// processors would have to fetch again.
func (e *entry) touch(search uint32) {
	if e.used.Load() < search {
		e.used.Store(search)
	}
}

// New returns an index that takes at most maxBytes of memory, keeping what was
// used last.
func New(maxBytes int64) *Index {
	x := &Index{max: maxBytes}
	x.texts.max, x.texts.kept = min(maxBytes/textShare, maxTexts), map[*entry]*text{}
	for i := range x.shards {
		x.shards[i].files = map[inode]*entry{}
	}
	x.scratch.New = func() any { return new(grams) }
	x.search.Store(1)
	x.clock.start(time.Now())
	return x
}

// Stats returns how many files are known and the memory that is accounted to
// them.
func (x *Index) Stats() (files int, bytes int64) {
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		files += len(s.files)
		s.mu.RUnlock()
	}
	return files, x.bytes.Load()
}

// Size is the memory that is accounted to all that is kept, texts and all.
func (x *Index) Size() int64 { return x.bytes.Load() + x.texts.size() }

// Verdict is what the index knows of a file.
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // nothing: read it
	Maybe                  // what is required may be in it: read it
	Missing                // what is required is not in it
	Binary                 // it was found to be binary
)

// Look returns what is known of a version of a file. With a nil query it
// never is Missing.
func (x *Index) Look(k Key, q *Query) Verdict {
	verdict, _ := x.look(k, q)
	return verdict
}

func (x *Index) look(k Key, q *Query) (Verdict, *entry) {
	search := x.searchOf(q)
	e := x.find(k)
	if e == nil {
		return Unknown, nil
	}
	e.touch(search)
	return e.verdictFor(q == nil || q.mayBeIn(e.filter)), e
}

// searchOf returns the count of the search that a query is for.
func (x *Index) searchOf(q *Query) uint32 {
	if q != nil {
		return q.begin(x)
	}
	return x.search.Load()
}

func (x *Index) shard(k Key) *shard {
	// Inodes of one directory often follow one another, devices are few.
	h := (k.Ino ^ k.Dev<<32) * 0x9E3779B97F4A7C15
	return &x.shards[h>>58]
}

// find returns the entry of a version of a file, or nil.
func (x *Index) find(k Key) *entry {
	s := x.shard(k)
	s.mu.RLock()
	e := s.files[inode{k.Dev, k.Ino}]
	s.mu.RUnlock()
	if e == nil || !e.is(k) {
		return nil
	}
	return e
}

// Add takes up a file's text (decoded as it is searched; nil and binary for a
// binary file). k is what a stat of the open file said before the reading, and
// taken a time before that stat: unless the file's change lies settled before
// it, the file is not taken up. What changed it since, even while it was
// read, gave it another key, so that k is not met again.
func (x *Index) Add(k Key, taken time.Time, text []byte, binary bool) {
	_ = x.add(Content{Key: k, Taken: taken, Text: text, Binary: binary}, func() error { return nil })
}

// add is Add that calls pause between pieces of a large text and gives up
// with its error.
func (x *Index) add(c Content, pause func() error) error {
	k := c.Key
	if !k.names() || !k.settled(c.Taken) {
		return nil
	}
	if e := x.find(k); e != nil {
		e.touch(x.search.Load())
		return nil
	}
	e := &entry{Key: k}
	switch {
	case c.Opaque:
		e.verdict = Maybe
	case c.Binary:
		e.verdict = Binary
	default:
		g := x.scratch.Get().(*grams)
		defer x.scratch.Put(g)
		defer g.clear()
		if err := g.read(c.Text, pause); err != nil {
			return err
		}
		if g.saturated() {
			e.verdict = Maybe
		} else {
			e.verdict, e.filter = Missing, g.filter()
		}
	}
	e.used.Store(x.search.Load())
	if !x.reserve(e.cost()) {
		return nil
	}
	s := x.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.files[inode{k.Dev, k.Ino}]; old != nil {
		x.forget(old)
	}
	x.refs.add(e)
	s.files[inode{k.Dev, k.Ino}] = e
	return nil
}

// forget accounts for an entry that is taken out of its shard.
func (x *Index) forget(e *entry) {
	x.bytes.Add(-e.cost())
	x.refs.remove(e)
	x.texts.forget(e)
}
