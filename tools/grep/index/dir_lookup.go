package index

import (
	"sync/atomic"
)

// Page stores references to the index entries of a directory's files, by a
// file's position in the directory, so that the next search need not look up
// each file. It is safe for concurrent use. It may be outdated: an entry is
// valid only if the file's key agrees.
type Page []atomic.Uint32

// NewPage returns a page for a directory of n entries.
func NewPage(n int) Page { return make(Page, n) }

// DirLookup looks up the index entries of a whole directory before its files
// are visited. Looking them up together fetches their memory in parallel; one
// by one, with system calls in between, takes several times as long. It must
// not be used concurrently. Close it after use.
type DirLookup struct {
	index   *Index
	query   *Query
	page    Page
	results []lookResult  // by position in page
	last    *entry        // entry of the last file passed to Lookup; nil: not indexed
	pooled  *[]lookResult // the memory of results, from Index.resultPool
}

// lookResult is the result for one entry; entry is nil if the page has none.
type lookResult struct {
	*entry
	filter     filter
	mayContain bool // the required literals may be in it
}

// NewDirLookup returns a DirLookup for a search of x. q may be nil.
func (x *Index) NewDirLookup(q *Query) *DirLookup {
	a := &DirLookup{index: x, query: q}
	if a.pooled, _ = x.resultPool.Get().(*[]lookResult); a.pooled == nil {
		a.pooled = new([]lookResult)
	}
	a.results = *a.pooled
	return a
}

// Close ends the use of the DirLookup and returns its memory to the index.
func (a *DirLookup) Close() {
	clear(a.results[:cap(a.results)]) // do not hold dropped entries
	*a.pooled = a.results[:0]
	a.index.resultPool.Put(a.pooled)
	*a = DirLookup{}
}

// SwitchDir looks up all entries of a directory. page is that directory's page;
// nil: it has none, and each file is looked up by itself.
func (a *DirLookup) SwitchDir(page Page) {
	search := a.index.searchNumber(a.query)
	a.page, a.results = page, a.results[:0]
	for i := range page {
		a.results = append(a.results, lookResult{entry: a.index.refs.get(page[i].Load())})
	}
	for i := range a.results {
		if k := &a.results[i]; k.entry != nil {
			k.filter, k.mayContain = k.entry.filter, true
		}
	}
	if first, ok := a.query.commonProbe(); ok {
		for i := range a.results {
			if k := &a.results[i]; len(k.filter) > 0 {
				k.mayContain = k.filter.mayHave(first)
			}
		}
	}
	for i := range a.results {
		k := &a.results[i]
		if k.entry == nil {
			continue
		}
		k.markUsed(search)
		k.mayContain = k.mayContain && (a.query == nil || a.query.mayBeIn(k.filter))
	}
}

// Lookup is like Index.Lookup, for the file at position place of the current page.
func (a *DirLookup) Lookup(place int, k Key) Verdict {
	if place < len(a.results) {
		if n := &a.results[place]; n.entry != nil && n.entry.hasKey(k) {
			a.last = n.entry
			return n.entry.verdictFor(n.mayContain)
		}
	}
	verdict, e := a.index.lookup(k, a.query)
	a.last = e
	if e != nil && place < len(a.page) {
		a.page[place].Store(e.ref)
	}
	return verdict
}
