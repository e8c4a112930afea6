package main

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// maxHitLines bounds the lines shown of one match, which may span many.
const maxHitLines = 100

// excerpt writes some of a file's matches with their context to a page. It gets
// the file in windows of whole lines.
type excerpt struct {
	*query
	matcher  *search.Matcher // bounded by a context
	out      *page
	from, to int   // matches to show, by number in the file
	passed   int   // number of matches so far
	starts   []int // positions of the first matches, if the text comes in one window

	next    int    // number of the window's first line
	pending int    // remaining lines of context after the last match shown
	tail    []line // the last lines of the previous window
}

// window writes the wanted matches of a window, and reports whether it needs
// the next window.
func (x *excerpt) window(text []byte) bool {
	x.matcher = x.matcher.ForText(text)
	at := cursor{line: x.next}
	rest, base := 0, 0 // end of the text shown; start of the part
	for base < len(text) {
		part := x.part(text[base:])
		for hit, ok := x.first(part, base, 0); ok; hit, ok = x.first(part, base, hit.End) {
			before := x.passed
			spans := x.pass(part, hit)
			if x.passed <= x.from || x.passed == before {
				continue
			}
			start := base + hit.Start
			x.contextAfter(text[rest:start])
			x.out.mark(max(before-x.from, 0))
			number := at.to(text, start)
			x.contextBefore(text[:start], number, before <= x.from)
			if x.args.Only {
				x.spans(part, hit, number, spans, max(before-x.from, 0))
			} else {
				x.lines(part, hit, number)
			}
			if x.out.full {
				return false
			}
			rest, x.pending = base+hit.End, x.out.after
		}
		base += len(part)
	}
	x.contextAfter(text[rest:])
	if x.out.full || x.passed >= x.to && x.pending == 0 {
		return false
	}
	x.next = at.to(text, len(text))
	x.keep(text)
	return true
}

// cursor counts line numbers at ascending positions of a text.
type cursor struct{ pos, line int }

func (c *cursor) to(text []byte, pos int) int {
	c.line += bytes.Count(text[c.pos:pos], newline)
	c.pos = pos
	return c.line
}

var newline = []byte{'\n'}

// first returns the next hit in a part that begins at base; false if no more
// matches are wanted or found.
func (x *excerpt) first(part []byte, base, from int) (search.Hit, bool) {
	if x.passed >= x.to {
		return search.Hit{}, false
	}
	if x.passed < len(x.starts) {
		from = max(from, x.starts[x.passed]-base)
	}
	return x.matcher.Next(part, from)
}

// span is the range of a match in a part.
type span struct{ start, end int }

// pass counts the matches of a hit. With -o it returns the spans of the wanted
// ones.
func (x *excerpt) pass(part []byte, hit search.Hit) []span {
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

// contextAfter writes the context after the last match.
func (x *excerpt) contextAfter(text []byte) {
	for ; x.pending > 0 && len(text) > 0; x.pending-- {
		l, rest := cutLine(text)
		matches := x.passed >= x.to && x.matches(text[:len(text)-len(rest)])
		x.out.add(clip(l, 0, x.out.width).at(x.out.last+1, !matches))
		text = rest
	}
}

// matches reports whether a line, given with its ending, matches although it is
// shown as context of a match on this page.
func (x *excerpt) matches(l []byte) bool {
	if x.matcher.CrossesLines() {
		return false
	}
	_, ok := x.matcher.Next(l, 0)
	return ok
}

// contextBefore writes the context before the line with the given number, which
// begins at the end of above. first is set for the first match shown.
func (x *excerpt) contextBefore(above []byte, number int, first bool) {
	want := min(x.out.before, number-1-x.out.last)
	var lines [][]byte
	for len(lines) < want && len(above) > 0 {
		begin := bytes.LastIndexByte(above[:len(above)-1], '\n') + 1
		lines = append(lines, above[begin:])
		above = above[:begin]
	}
	earlier := want - len(lines) // in the previous window
	for _, l := range x.tail[max(len(x.tail)-earlier, 0):] {
		x.out.add(l)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		l, _ := cutLine(lines[i])
		x.out.add(clip(l, 0, x.out.width).at(number-1-i, !first || !x.matches(lines[i])))
	}
}

// keep stores the lines that may be context of a match in the next window.
func (x *excerpt) keep(text []byte) {
	if x.passed >= x.to || x.out.before == 0 {
		x.tail = nil
		return
	}
	var lines []line
	number := x.next
	for len(lines) < x.out.before && len(text) > 0 {
		begin := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		l, _ := cutLine(text[begin:])
		text = text[:begin]
		number--
		lines = append(lines, clip(l, 0, x.out.width).at(number, true))
	}
	kept := x.tail[max(len(x.tail)-(x.out.before-len(lines)), 0):]
	for i := len(lines) - 1; i >= 0; i-- {
		kept = append(kept, lines[i])
	}
	x.tail = kept
}

// lines writes the lines of a hit; number is the first line's number. A long
// line is cut around the start of the match.
func (x *excerpt) lines(part []byte, hit search.Hit, number int) {
	text := part[hit.Start:hit.End]
	match := span{hit.Start, hit.Start}
	if len(text) > x.out.width {
		x.matcher.EachMatch(part, hit, func(start, end int) bool {
			match = span{start, end}
			return false
		})
	}
	match.start -= hit.Start
	x.show(text, number, match.start)
}

// spans writes matches without the rest of their lines. number is the number of
// the hit's first line, shown the number of matches shown before.
func (x *excerpt) spans(part []byte, hit search.Hit, number int, spans []span, shown int) {
	at := cursor{pos: hit.Start, line: number}
	for i, s := range spans {
		x.out.mark(shown + i)
		x.show(part[s.start:s.end], at.to(part, s.start), 0)
	}
	x.out.last = at.to(part, hit.End-1)
}

// show writes each line of text with its number. mark is the byte offset that
// must not be cut off.
func (x *excerpt) show(text []byte, number, mark int) {
	for shown := 0; len(text) > 0 || shown == 0; shown++ {
		if shown == maxHitLines {
			left := bytes.Count(text, newline)
			if text[len(text)-1] != '\n' {
				left++
			}
			x.out.more(left, number)
			return
		}
		l, rest := cutLine(text)
		x.out.add(clip(l, min(max(mark, 0), len(l)), x.out.width).at(number, false))
		mark -= len(text) - len(rest)
		text = rest
		number++
	}
}

// cutLine splits text into its first line, without the ending, and the rest.
func cutLine(text []byte) (first, rest []byte) {
	first = text
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		first, rest = text[:end], text[end+1:]
	}
	return bytes.TrimSuffix(first, []byte{'\r'}), rest
}
