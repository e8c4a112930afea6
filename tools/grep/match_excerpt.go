package main

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// maxHitLines bounds the lines shown of one match, which may span many.
const maxHitLines = 100

// matchExcerpt writes some of a file's matches with their context to a page. It
// gets the file in windows of whole lines.
type matchExcerpt struct {
	*query
	matcher  *search.Matcher // stops at the end of a context
	out      *resultPage
	from, to int   // matches to show, by their number in the file, from 0; to is excluded
	passed   int   // number of matches so far
	starts   []int // positions of the first matches, if the text comes in one window; otherwise nil

	windowLine  int    // number of the window's first line
	contextLeft int    // remaining lines of context after the last match shown
	tail        []line // the last lines of the previous window, as context
}

// writeWindow writes the wanted matches of a window. It reports whether the
// next window is needed.
func (x *matchExcerpt) writeWindow(text []byte) (wantsMore bool) {
	x.matcher = x.matcher.ForText(text)
	at := cursor{line: x.windowLine}
	rest, base := 0, 0 // end of the text shown; start of the part
	for base < len(text) {
		part := x.firstPart(text[base:])
		for hit, ok := x.nextMatchedLines(part, base, 0); ok; hit, ok = x.nextMatchedLines(part, base, hit.End) {
			before := x.passed
			spans := x.countMatchedLines(part, hit)
			if x.passed <= x.from || x.passed == before {
				continue
			}
			start := base + hit.Start
			x.writeContextAfter(text[rest:start])
			x.out.markComplete(max(before-x.from, 0))
			number := at.lineAt(text, start)
			x.writeContextBefore(text[:start], number, before <= x.from)
			if x.args.Only {
				x.writeSpans(part, hit, number, spans, max(before-x.from, 0))
			} else {
				x.writeLines(part, hit, number)
			}
			if x.out.full {
				return false
			}
			rest, x.contextLeft = base+hit.End, x.out.after
		}
		base += len(part)
	}
	x.writeContextAfter(text[rest:])
	if x.out.full || x.passed >= x.to && x.contextLeft == 0 {
		return false
	}
	x.windowLine = at.lineAt(text, len(text))
	x.keepContextBefore(text)
	return true
}

// cursor counts line numbers at ascending positions of a text. pos is the last
// position, line its line number.
type cursor struct{ pos, line int }

// lineAt returns the number of the line that contains pos. pos must not
// decrease.
func (c *cursor) lineAt(text []byte, pos int) int {
	c.line += bytes.Count(text[c.pos:pos], newline)
	c.pos = pos
	return c.line
}

// newline is a line feed, the end of a line in the searched text.
var newline = []byte{'\n'}

// nextMatchedLines returns the lines of the next match at or after from in a
// part that begins at base.
// It returns false if no more matches are wanted or found.
func (x *matchExcerpt) nextMatchedLines(part []byte, base, from int) (search.MatchedLines, bool) {
	if x.passed >= x.to {
		return search.MatchedLines{}, false
	}
	if x.passed < len(x.starts) {
		from = max(from, x.starts[x.passed]-base)
	}
	return x.matcher.Next(part, from)
}

// span is the range of a match: byte offsets in the part of the text that is
// searched at once (firstPart). end is excluded.
type span struct{ start, end int }

// countMatchedLines adds the matches in the lines hit to x.passed; without -o these lines
// count as one match. With -o it returns the spans of the wanted matches, else nil.
func (x *matchExcerpt) countMatchedLines(part []byte, hit search.MatchedLines) []span {
	if !x.args.Only {
		x.passed++
		return nil
	}
	var spans []span
	x.matcher.EachMatch(part, hit, func(start, end int) bool {
		if end > start {
			if x.passed >= x.from {
				spans = append(spans, span{start, end})
			}
			x.passed++
		}
		return x.passed < x.to
	})
	return spans
}

// writeContextAfter writes the lines at the start of text, at most contextLeft of them,
// as context of the last match shown. text begins right after that match.
func (x *matchExcerpt) writeContextAfter(text []byte) {
	for ; x.contextLeft > 0 && len(text) > 0; x.contextLeft-- {
		l, rest := cutFirstLine(text)
		matches := x.passed >= x.to && x.lineMatches(text[:len(text)-len(rest)])
		x.out.addLine(clipLine(l, 0, x.out.width).withNumber(x.out.lastLine+1, !matches))
		text = rest
	}
}

// lineMatches reports whether a line, given with its ending, matches although
// it is shown as context of another match.
func (x *matchExcerpt) lineMatches(l []byte) bool {
	if x.matcher.CrossesLines() {
		return false
	}
	_, ok := x.matcher.Next(l, 0)
	return ok
}

// writeContextBefore writes the context before the line with the given number,
// which begins at the end of above. first is set for the first match shown.
func (x *matchExcerpt) writeContextBefore(above []byte, number int, first bool) {
	want := min(x.out.before, number-1-x.out.lastLine)
	var lines [][]byte
	for len(lines) < want && len(above) > 0 {
		begin := bytes.LastIndexByte(above[:len(above)-1], '\n') + 1
		lines = append(lines, above[begin:])
		above = above[:begin]
	}
	earlier := want - len(lines) // in the previous window
	for _, l := range x.tail[max(len(x.tail)-earlier, 0):] {
		x.out.addLine(l)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		l, _ := cutFirstLine(lines[i])
		x.out.addLine(clipLine(l, 0, x.out.width).withNumber(number-1-i, !first || !x.lineMatches(lines[i])))
	}
}

// keepContextBefore stores the last lines of a window, which may be context of a match
// in the next window.
func (x *matchExcerpt) keepContextBefore(text []byte) {
	if x.passed >= x.to || x.out.before == 0 {
		x.tail = nil
		return
	}
	var lines []line
	number := x.windowLine
	for len(lines) < x.out.before && len(text) > 0 {
		begin := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		l, _ := cutFirstLine(text[begin:])
		text = text[:begin]
		number--
		lines = append(lines, clipLine(l, 0, x.out.width).withNumber(number, true))
	}
	kept := x.tail[max(len(x.tail)-(x.out.before-len(lines)), 0):]
	for i := len(lines) - 1; i >= 0; i-- {
		kept = append(kept, lines[i])
	}
	x.tail = kept
}

// writeLines writes the lines of a hit. number is the first line's number. A
// long line is cut around the start of the match.
func (x *matchExcerpt) writeLines(part []byte, hit search.MatchedLines, number int) {
	text := part[hit.Start:hit.End]
	match := span{hit.Start, hit.Start}
	if len(text) > x.out.width {
		x.matcher.EachMatch(part, hit, func(start, end int) bool {
			match = span{start, end}
			return false
		})
	}
	match.start -= hit.Start
	x.writeText(text, number, match.start)
}

// writeSpans writes matches without the rest of their lines. number is the
// number of the hit's first line, shown the number of matches shown before.
func (x *matchExcerpt) writeSpans(part []byte, hit search.MatchedLines, number int, spans []span, shown int) {
	at := cursor{pos: hit.Start, line: number}
	for i, s := range spans {
		x.out.markComplete(shown + i)
		x.writeText(part[s.start:s.end], at.lineAt(part, s.start), 0)
	}
	x.out.lastLine = at.lineAt(part, hit.End-1)
}

// writeText writes each line of text with its number. mark is a byte offset
// that must not be cut off.
func (x *matchExcerpt) writeText(text []byte, number, mark int) {
	for shown := 0; len(text) > 0 || shown == 0; shown++ {
		if shown == maxHitLines {
			left := bytes.Count(text, newline)
			if text[len(text)-1] != '\n' {
				left++
			}
			x.out.addMatchRest(left, number)
			return
		}
		l, rest := cutFirstLine(text)
		x.out.addLine(clipLine(l, min(max(mark, 0), len(l)), x.out.width).withNumber(number, false))
		mark -= len(text) - len(rest)
		text = rest
		number++
	}
}

// cutFirstLine splits text into its first line, without the line feed, and the
// rest after that.
func cutFirstLine(text []byte) (first, rest []byte) {
	first = text
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		first, rest = text[:end], text[end+1:]
	}
	return bytes.TrimSuffix(first, []byte{'\r'}), rest
}
