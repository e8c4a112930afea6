package index

import (
	"bytes"
	"sync"
)

const (
	// TextSize is the size of the largest file whose text is kept, in
	// bytes: many small texts save more system calls than few large ones.
	TextSize = 4 << 20
	// textShare is the divisor of the limit that gives the share of texts;
	// maxTexts bounds it.
	textShare = 3
	maxTexts  = 40 << 20
	// idleSearches is the number of searches for which an unused text is
	// kept when memory is short. Otherwise a search whose texts do not all
	// fit would drop the texts that it needs the next time.
	idleSearches = 8
)

// texts holds the contents of some recently searched files for the next search,
// which often is a narrower one.
type texts struct {
	mu    sync.Mutex
	max   int64
	bytes int64
	kept  map[*entry]*text
	full  uint32 // the search in which idle texts were last dropped
}

type text struct {
	raw  []byte
	used uint32 // the last search that used it
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

// keep stores a copy of an entry's text if it fits. free is the memory that
// filters leave.
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

// makeRoom drops idle texts. It visits all texts, once a search, and reports
// whether it did.
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

// clear drops all texts.
func (t *texts) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.kept)
	t.bytes = 0
}

// forget drops the text of a removed entry.
func (t *texts) forget(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept := t.kept[e]; kept != nil {
		t.bytes -= int64(len(kept.raw))
		delete(t.kept, e)
	}
}

// Text returns the content of the last file passed to Look, as read in that
// version, or nil if it is not kept. The caller must not change it.
func (a *DirLookup) Text() []byte {
	if a.last == nil || a.last.Size > TextSize {
		return nil
	}
	return a.index.texts.get(a.last, a.index.searchOf(a.query))
}

// Selects reports whether the search excludes files by required literals. Then
// the few files that it reads in vain are worth keeping, too: they will likely
// pass the filter again the next time.
func (a *DirLookup) Selects() bool { return a.query != nil }

// KeepText offers the content of the last file passed to Look. It was read
// after a stat that gave k.
func (a *DirLookup) KeepText(k Key, raw []byte) {
	// An indexed version had settled when it was added, so any change of
	// the file since then, before or after the reading, alters its key.
	if a.last != nil && a.last.is(k) && int64(len(raw)) == k.Size && k.Size <= TextSize {
		a.index.texts.keep(a.last, raw, a.index.searchOf(a.query), a.index.max-a.index.bytes.Load())
	}
}
