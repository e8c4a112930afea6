package index

import (
	"bytes"
	"sync"
)

const (
	// TextSize is the size of the largest file whose text is kept: many small
	// ones spare more system calls than few large ones.
	TextSize = 4 << 20
	// textShare is what part of the bound texts may take, and maxTexts how much
	// at the most.
	textShare = 3
	maxTexts  = 40 << 20
	// idleSearches is for how many searches a text is kept unused when there is
	// no room. One that takes more than there is room for would otherwise push
	// out what it needs itself the next time.
	idleSearches = 8
)

// texts are the contents of some files that have been searched lately, for the next
// search, which often is a narrower one.
type texts struct {
	mu    sync.Mutex
	max   int64
	bytes int64
	kept  map[*entry]*text
	full  uint32 // the search at which nothing was idle
}

type text struct {
	raw  []byte
	used uint32 // by this search last
}

// get returns the text of an entry, or nil.
func (t *texts) get(e *entry, search uint32) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.kept[e]
	if kept == nil {
		return nil
	}
	kept.used = search
	return kept.raw
}

// keep takes up a copy of an entry's text, if there is room. free is how much
// the filters leave.
func (t *texts) keep(e *entry, raw []byte, search uint32, free int64) {
	size := int64(len(raw))
	t.mu.Lock()
	defer t.mu.Unlock()
	most := min(t.max, free)
	if t.kept[e] != nil || t.bytes+size > most && !t.makeRoom(search) || t.bytes+size > most {
		return
	}
	t.kept[e] = &text{raw: bytes.Clone(raw), used: search}
	t.bytes += size
}

// makeRoom forgets what is idle. It goes through all texts, once a search.
func (t *texts) makeRoom(search uint32) bool {
	if t.full == search {
		return false
	}
	t.full = search
	for e, kept := range t.kept {
		if kept.used+idleSearches < search {
			t.bytes -= int64(len(kept.raw))
			delete(t.kept, e)
		}
	}
	return true
}

func (t *texts) size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

// clear forgets all.
func (t *texts) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.kept)
	t.bytes = 0
}

// forget drops the text of an entry that is no more.
func (t *texts) forget(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept := t.kept[e]; kept != nil {
		t.bytes -= int64(len(kept.raw))
		delete(t.kept, e)
	}
}

// Text returns the content of the file that was looked at last, if it is kept:
// as that version of it was read. It is not to be changed.
func (a *Ahead) Text() []byte {
	if a.last == nil || a.last.Size > TextSize {
		return nil
	}
	return a.index.texts.get(a.last, a.index.searchOf(a.query))
}

// Selects reports whether the search rules files out by what it requires, so
// that the few it reads in vain are worth keeping, too: they seem to have that
// the next time as well.
func (a *Ahead) Selects() bool { return a.query != nil }

// KeepText offers the content of the file that was looked at last, which was
// read after a stat that gave k.
func (a *Ahead) KeepText(k Key, raw []byte) {
	// A version that the index knows had settled when it was taken up, so that
	// what changed the file since shows in its key, before or after the reading.
	if a.last != nil && a.last.is(k) && int64(len(raw)) == k.Size && k.Size <= TextSize {
		a.index.texts.keep(a.last, raw, a.index.searchOf(a.query), a.index.max-a.index.bytes.Load())
	}
}
