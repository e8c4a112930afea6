package index

import (
	"sync"
	"sync/atomic"
)

// Page remembers which entries of an index the files of one directory have,
// by their places in it, so that the next search need not look each of them
// up. It is safe for concurrent use. It may be wrong: what it says of a file
// counts only once the file's key agrees.
type Page []atomic.Uint32

// NewPage returns a page for a directory of n entries.
func NewPage(n int) Page { return make(Page, n) }

// Ahead looks at the entries of one directory at a time, before its files
// are: all at once, their memory is fetched while others are being looked at,
// and not one by one with system calls in between, which takes a multiple.
// It serves one goroutine.
type Ahead struct {
	index *Index
	query *Query
	page  Page
	known []known
	last  *entry // of the file looked at last
	space *[]known
}

// known is what was found of one entry.
type known struct {
	*entry
	filter filter
	may    bool // what is required may be in it
}

// NewAhead returns one for a search in x.
func (x *Index) NewAhead(q *Query) *Ahead {
	a := &Ahead{index: x, query: q}
	if a.space, _ = x.spaces.Get().(*[]known); a.space == nil {
		a.space = new([]known)
	}
	a.known = *a.space
	return a
}

// Close ends the use, so that the next search has the memory.
func (a *Ahead) Close() {
	clear(a.known[:cap(a.known)]) // what is forgotten is not held
	*a.space = a.known[:0]
	a.index.spaces.Put(a.space)
	*a = Ahead{}
}

// Turn goes on to another directory.
func (a *Ahead) Turn(page Page) {
	search := a.index.searchOf(a.query)
	a.page, a.known = page, a.known[:0]
	for i := range page {
		a.known = append(a.known, known{entry: a.index.refs.get(page[i].Load())})
	}
	for i := range a.known {
		if k := &a.known[i]; k.entry != nil {
			k.filter, k.may = k.entry.filter, true
		}
	}
	if first, ok := a.query.first(); ok {
		for i := range a.known {
			if k := &a.known[i]; len(k.filter) > 0 {
				k.may = k.filter.has(first)
			}
		}
	}
	for i := range a.known {
		k := &a.known[i]
		if k.entry == nil {
			continue
		}
		k.touch(search)
		k.may = k.may && (a.query == nil || a.query.mayBeIn(k.filter))
	}
}

// Look is Index.Look for the file at a place of the page.
func (a *Ahead) Look(place int, k Key) Verdict {
	if place < len(a.known) {
		if n := &a.known[place]; n.entry != nil && n.entry.is(k) {
			a.last = n.entry
			return n.entry.verdictFor(n.may)
		}
	}
	verdict, e := a.index.look(k, a.query)
	a.last = e
	if e != nil && place < len(a.page) {
		a.page[place].Store(e.ref)
	}
	return verdict
}

// refs finds entries by number, until they are forgotten; numbers are used
// again. 0 is none.
type refs struct {
	chunks atomic.Pointer[[]*chunk]

	mu   sync.Mutex
	next uint32
	free []uint32
}

const chunkSize = 4096

type chunk [chunkSize]atomic.Pointer[entry]

// get returns the entry that has a number now, or nil.
func (r *refs) get(ref uint32) *entry {
	if ref == 0 {
		return nil
	}
	return (*r.chunks.Load())[ref/chunkSize][ref%chunkSize].Load()
}

// add gives an entry a number, before others can find the entry.
func (r *refs) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		e.ref, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.next++
		e.ref = r.next
	}
	var chunks []*chunk
	if now := r.chunks.Load(); now != nil {
		chunks = *now
	}
	if int(e.ref/chunkSize) == len(chunks) {
		chunks = append(chunks[:len(chunks):len(chunks)], new(chunk))
		r.chunks.Store(&chunks)
	}
	chunks[e.ref/chunkSize][e.ref%chunkSize].Store(e)
}

// remove takes an entry's number back.
func (r *refs) remove(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(*r.chunks.Load())[e.ref/chunkSize][e.ref%chunkSize].Store(nil)
	r.free = append(r.free, e.ref)
}
