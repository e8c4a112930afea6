// Package index remembers, in bounded memory, enough of each file's content to
// tell that a pattern cannot be in it, so that a later search need not read
// it.
//
// It never says so of content that it has not seen: a file is known by device,
// inode, size, and both times in nanoseconds, and one that was changed so
// recently that a further change could leave the same times is not taken up.
package index

import (
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

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

// Index holds the filters of files. It is safe for concurrent use.
type Index struct{}

// New returns an index that takes at most maxBytes of memory, keeping what was
// used last.
func New(maxBytes int64) *Index { return &Index{} }

// Query is what a pattern requires, made once a search.
type Query struct{}

// NewQuery takes what search.Matcher.Required returns. A query that requires
// nothing usable is nil.
func NewQuery(required [][]search.Literal) *Query { return nil }

// Verdict is what the index knows of a file.
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // nothing: read it
	Maybe                  // what is required may be in it: read it
	Missing                // what is required is not in it
	Binary                 // it was found to be binary
)

// Look returns what is known of a version of a file.
func (x *Index) Look(k Key, q *Query) Verdict { return Unknown }

// Add takes up a file's text (decoded as it is searched; nil and binary for a
// binary file). k is of the open file it was read from, the same before and
// after the reading, and taken a time before the first stat: unless the
// file's change lies settled before that, it is not taken up.
func (x *Index) Add(k Key, taken time.Time, text []byte, binary bool) {}
