package index

import (
	"sync/atomic"
)

// Page stores the index entries of a directory's files, by a file's position in
// the directory, so that the next search need not look up each file. It is safe
// for concurrent use. It may be outdated: an entry is valid only if the file's
// key agrees.
type Page []atomic.Uint32

// NewPage returns a page for a directory of n entries.
func NewPage(n int) Page { return make(Page, n) }

// DirLookup checks the index entries of a whole directory before its files are
// visited. Checking them together fetches their memory in parallel; one by one,
// with system calls in between, takes several times as long. It must not be
// used concurrently.
type DirLookup struct {
	index *Index
	query *Query
	page  Page
	known []lookResult
	last  *entry // of the last file passed to Look
	space *[]lookResult
}

// lookResult is the result for one entry.
type lookResult struct {
	*entry
	filter filter
	may    bool // the required literals may be in it
}

// NewDirLookup returns a DirLookup for a search of x.
func (x *Index) NewDirLookup(q *Query) *DirLookup {
	a := &DirLookup{index: x, query: q}
	if a.space, _ = x.resultPool.Get().(*[]lookResult); a.space == nil {
		a.space = new([]lookResult)
	}
	a.known = *a.space
	return a
}

// Close ends the use of a and returns its memory to the next search.
func (a *DirLookup) Close() {
	clear(a.known[:cap(a.known)]) // do not hold dropped entries
	*a.space = a.known[:0]
	a.index.resultPool.Put(a.space)
	*a = DirLookup{}
}

// SwitchDir switches to another directory.
func (a *DirLookup) SwitchDir(page Page) {
	search := a.index.searchOf(a.query)
	a.page, a.known = page, a.known[:0]
	for i := range page {
		a.known = append(a.known, lookResult{entry: a.index.refs.get(page[i].Load())})
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

// Look is like Index.Look, for the file at position place of the page.
func (a *DirLookup) Look(place int, k Key) Verdict {
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
