package index

import "sync/atomic"

// inode identifies a file by device and inode number, but not its version.
type inode struct{ dev, ino uint64 }

// entry is one version of a file. It is immutable except for used.
type entry struct {
	Key
	filter  filter        // of the text; empty if verdict needs none
	verdict Verdict       // Missing: the filter decides; otherwise the answer of Lookup
	ref     uint32        // its number in Index.refs
	used    atomic.Uint32 // the last search that looked it up
}

// entryCost is the memory of an entry in addition to its filter, in bytes: the
// struct, its reference, and a slot of a map that has just grown.
const entryCost = 80 + 16 + 64

// cost returns the memory accounted to the entry in bytes, with its filter.
func (e *entry) cost() int64 { return entryCost + 8*int64(len(e.filter)) }

// hasKey reports whether e is the version with key k.
func (e *entry) hasKey(k Key) bool { return e.Key == k }

// verdictFor returns the verdict for a query. mayContain tells whether the text
// may have the required literals, according to the filter.
func (e *entry) verdictFor(mayContain bool) Verdict {
	if e.verdict == Missing && mayContain {
		return Maybe
	}
	return e.verdict
}

// markUsed records that a search looked up the entry. It writes only if that is
// new, so that other processors need not fetch the memory again.
func (e *entry) markUsed(search uint32) {
	if e.used.Load() < search {
		e.used.Store(search)
	}
}
