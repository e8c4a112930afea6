package main

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// count counts the matches in a run of whole lines, or in a part of it if the
// context ends. In mode files_with_matches it stops at one.
func (w *searcher) count(text []byte) (n int) {
	w.starts = nil
	if !w.matcher.CrossesLines() { // otherwise the next match depends on the end of the previous one
		w.starts = w.places[:0]
	}
	m := w.matcher.ForText(text)
	for base := 0; base < len(text) && w.ctx.Err() == nil; {
		part := w.part(text[base:])
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
			n += w.countHit(part, hit)
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

// countHit returns the number of matches that a hit counts as: all matches if
// they are counted separately, all non-empty ones with -o, otherwise one. Like
// in ripgrep, an empty match at the end of a last line without an ending counts
// only if it is the only one.
func (w *searcher) countHit(text []byte, hit search.Hit) int {
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

// partSize bounds the text searched between two checks of the deadline.
const partSize = wholeSize

// part returns the beginning of a text to search at once: whole lines, or all
// of it if matches may span lines.
func (q *query) part(text []byte) []byte {
	if q.matcher.CrossesLines() || len(text) <= partSize {
		return text
	}
	end := bytes.IndexByte(text[partSize:], '\n')
	if end < 0 {
		return text
	}
	return text[:partSize+end+1]
}

// countText counts the matches of text. strange reports that the text may be in
// another encoding than UTF-8; it is false for text that cannot match in any
// encoding.
func (w *searcher) countText(text []byte) (n int, strange bool) {
	if !w.byLine && notUTF8(text) {
		return 0, true
	}
	w.foreign = false
	n = w.count(text)
	return n, w.foreign
}
