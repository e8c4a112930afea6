package main

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// countMatches counts the matches in a run of whole lines, or in a part of it
// if the context ends. In mode files_with_matches it returns at most 1. It sets
// w.starts.
func (w *searcher) countMatches(text []byte) (n int) {
	w.starts = nil
	if !w.matcher.CrossesLines() { // otherwise the next match depends on the end of the previous one
		w.starts = w.startsBuf[:0]
	}
	m := w.matcher.ForText(text)
	for base := 0; base < len(text) && w.ctx.Err() == nil; {
		part := w.firstPart(text[base:])
		if !w.args.Only && !w.countsSeparately() && w.args.OutputMode != modeFiles {
			var more int
			more, w.starts = w.matcher.CountWithStarts(part, base, w.starts)
			n, base = n+more, base+len(part)
			continue
		}
		base += len(part)
		hits := 0
		for hit, ok := m.Next(part, 0); ok; hit, ok = m.Next(part, hit.End) {
			hits++
			n += w.countMatchesIn(part, hit)
			if n > 0 && w.args.OutputMode == modeFiles {
				return 1
			}
		}
		if n == 0 && hits > 0 && w.countsSeparately() && !w.args.Only {
			n = 1 // the one at the end
		}
	}
	return n
}

// countsSeparately reports whether matches that share lines are counted
// separately, as ripgrep does if they may span lines.
func (w *searcher) countsSeparately() bool { return w.args.Multiline && w.args.OutputMode == modeCount }

// countMatchesIn returns the number of matches that the lines hit count as: all matches if
// they are counted separately, all non-empty matches with -o, otherwise one. As
// in ripgrep, an empty match at the end of a last line without an ending counts
// only if it is the only match.
func (w *searcher) countMatchesIn(text []byte, hit search.MatchedLines) int {
	apart := w.countsSeparately()
	if !w.args.Only && !apart {
		return 1
	}
	n := 0
	w.matcher.EachMatch(text, hit, func(start, end int) bool {
		if end > start || apart && !w.args.Only && (end < len(text) || bytes.HasSuffix(text, newline)) {
			n++
		}
		return true
	})
	return n
}

// partSize bounds the text searched between two checks of the deadline, in
// bytes.
const partSize = wholeSize

// firstPart returns the beginning of a text to search at once: whole lines, or
// all of it if matches may span lines.
func (q *query) firstPart(text []byte) []byte {
	if q.matcher.CrossesLines() || len(text) <= partSize {
		return text
	}
	end := bytes.IndexByte(text[partSize:], '\n')
	if end < 0 {
		return text
	}
	return text[:partSize+end+1]
}

// countUTF8 counts the matches of text. strange reports that the text is not
// UTF-8 and may contain matches in another encoding. It is false for text that
// cannot match in any encoding.
func (w *searcher) countUTF8(text []byte) (n int, strange bool) {
	if !w.needsASCIILiteral && isNotUTF8(text) {
		return 0, true
	}
	w.sawInvalid = false
	n = w.countMatches(text)
	return n, w.sawInvalid
}
