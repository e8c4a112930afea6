// Package search finds the lines of a text that match a pattern, as ripgrep
// finds them: the pattern has ripgrep's syntax and meaning (Unicode classes
// and word boundaries, ^ and $ at each line, \r\n as one ending is not
// assumed), and a match never spans lines unless Options.Multiline is set.
//
//	m, err := search.Compile(`func \w+`, search.Options{})
//	for hit, ok := m.Next(text, 0); ok; hit, ok = m.Next(text, hit.End) {
//		line := text[hit.Start:hit.End]
//	}
package search

import (
	"bytes"
	"regexp"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Options say how a pattern is meant.
type Options struct {
	IgnoreCase bool // letters match whatever their case (Unicode simple folding)
	Literal    bool // the pattern is text, not an expression
	Multiline  bool // matches may span lines, and . matches \n
}

// Matcher is a compiled pattern. It is safe for concurrent use.
type Matcher struct {
	re *regexp.Regexp
}

// Hit is the lines that one match, or with Options.Multiline several matches
// that share lines, are in: from the first byte of the first to behind the
// ending of the last. It holds all of each line.
type Hit struct{ Start, End int }

// Literal is text that stands in whatever matches.
type Literal struct {
	Text []byte // never empty; lower case ASCII letters only, if Fold
	Fold bool   // ASCII letters in any case; also the two signs beyond ASCII that fold to k and s
}

// Compile reads a pattern. One that cannot be read, or that asks for what
// the engine does not have (look-around, back-references), is BAD_PATTERN
// with what is not supported and where.
func Compile(pattern string, o Options) (*Matcher, error) {
	if o.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := "m"
	if o.IgnoreCase {
		flags += "i"
	}
	if o.Multiline {
		flags += "s"
	}
	re, err := regexp.Compile("(?" + flags + ":" + pattern + ")")
	if err != nil {
		return nil, toolerr.New(toolerr.BadPattern, "%v", err)
	}
	return &Matcher{re: re}, nil
}

// Required returns what a text must hold to match at all: at least one
// literal of each set. Nothing is required when there are no sets. A text
// without one of them need not be searched; most others will match.
func (m *Matcher) Required() [][]Literal { return nil }

// Next returns the first hit at or behind from, which is the beginning of a
// line (or the end of the text). Without Options.Multiline text may be any
// run of whole lines of a file.
func (m *Matcher) Next(text []byte, from int) (Hit, bool) {
	if from >= len(text) {
		return Hit{}, false
	}
	loc := m.re.FindIndex(text[from:])
	if loc == nil || from+loc[0] == len(text) && text[len(text)-1] == '\n' {
		return Hit{}, false
	}
	start := from + bytes.LastIndexByte(text[from:from+loc[0]], '\n') + 1
	end := from + loc[1]
	if next := bytes.IndexByte(text[end:], '\n'); next >= 0 {
		end += next + 1
	} else {
		end = len(text)
	}
	return Hit{start, end}, true
}

// Spans calls yield with where each match in a hit begins and ends, in order
// and without overlap, empty ones included, until it returns false.
func (m *Matcher) Spans(text []byte, h Hit, yield func(start, end int) bool) {
	for _, loc := range m.re.FindAllIndex(text[h.Start:h.End], -1) {
		if !yield(h.Start+loc[0], h.Start+loc[1]) {
			return
		}
	}
}
