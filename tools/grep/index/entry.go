package index

import "sync/atomic"

type inode struct{ dev, ino uint64 }

// entry is one version of a file; it is immutable except for used.
type entry struct {
	Key
	filter  filter
	verdict Verdict // Missing: ask the filter; otherwise the answer of Look
	ref     uint32
	used    atomic.Uint32
}

// entryCost is the memory of an entry in addition to its filter, in bytes: the
// struct, its reference, and a slot of a map that has just grown.
const entryCost = 80 + 16 + 64

func (e *entry) cost() int64 { return entryCost + 8*int64(len(e.filter)) }

func (e *entry) is(k Key) bool { return e.Key == k }

// verdictFor returns the verdict for the filter's answer may.
func (e *entry) verdictFor(may bool) Verdict {
	if e.verdict == Missing && may {
		return Maybe
	}
	return e.verdict
}

// touch records the use in a search. It writes only if that is new, so that
// other processors need not fetch the memory again.
func (e *entry) touch(search uint32) {
	if e.used.Load() < search {
		e.used.Store(search)
	}
}
