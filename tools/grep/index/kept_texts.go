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
	// maxTexts bounds it, in bytes.
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
	mu           sync.Mutex
	maxBytes     int64
	bytes        int64            // of all texts
	kept         map[*entry]*text // by entry
	prunedSearch uint32           // the search in which idle texts were last dropped
}

// text is the content of one file.
type text struct {
	raw  []byte // as read, not decoded
	used uint32 // the last search that used it
}

// get returns the text of an entry, or nil if it is not kept. The text counts
// as used in the search.
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

// store keeps a copy of an entry's text if it fits. free is the memory that
// filters leave, in bytes.
func (t *texts) store(e *entry, raw []byte, search uint32, free int64) {
	size := int64(len(raw))
	t.mu.Lock()
	defer t.mu.Unlock()
	most := min(t.maxBytes, free)
	if t.kept[e] != nil || t.bytes+size > most && !t.dropIdle(search) || t.bytes+size > most {
		return
	}
	t.kept[e] = &text{raw: bytes.Clone(raw), used: search}
	t.bytes += size
}

// dropIdle drops the texts that were not used for idleSearches. It visits all
// texts, at most once in a search, and returns false if it has already done so.
func (t *texts) dropIdle(search uint32) bool {
	if t.prunedSearch == search {
		return false
	}
	t.prunedSearch = search
	for e, kept := range t.kept {
		if kept.used+idleSearches < search {
			t.bytes -= int64(len(kept.raw))
			delete(t.kept, e)
		}
	}
	return true
}

// size returns the memory of all kept texts in bytes.
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

// drop removes the text of an entry that was removed from the index.
func (t *texts) drop(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept := t.kept[e]; kept != nil {
		t.bytes -= int64(len(kept.raw))
		delete(t.kept, e)
	}
}

// Text returns the content of the last file passed to Lookup, as read in that
// version, or nil if it is not kept. The caller must not change it.
func (a *DirLookup) Text() []byte {
	if a.last == nil || a.last.Size > TextSize {
		return nil
	}
	return a.index.texts.get(a.last, a.index.searchNumber(a.query))
}

// HasQuery reports whether the search excludes files by required literals. Then
// the few files that it reads in vain are worth keeping, too: they will likely
// pass the filter again in the next search.
func (a *DirLookup) HasQuery() bool { return a.query != nil }

// KeepText stores the content of the last file passed to Lookup for later
// searches, if there is room. The content was read after a stat that gave k.
func (a *DirLookup) KeepText(k Key, raw []byte) {
	// An indexed version had settled when it was added, so any change of
	// the file since then, before or after the reading, alters its key.
	if a.last != nil && a.last.hasKey(k) && int64(len(raw)) == k.Size && k.Size <= TextSize {
		a.index.texts.store(a.last, raw, a.index.searchNumber(a.query), a.index.maxBytes-a.index.usedBytes.Load())
	}
}
