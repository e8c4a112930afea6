package search

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// automata are the two automata of one search, for matches that are read
// forward and backward. They are reused, since their states are expensive to
// compute.
type automata struct{ forward, backward *dfa }

// newAutomataPool returns a pool of *automata for m.
func newAutomataPool(m *Matcher) *sync.Pool {
	return &sync.Pool{New: func() any {
		s := &automata{forward: newDFA(m.forward, false), backward: newDFA(m.backward, true)}
		s.forward.startFinder = m.startFinder
		return s
	}}
}

// takeAutomata returns automata from the pool. The caller puts them back.
func (m *Matcher) takeAutomata() *automata {
	s := m.pool.Get().(*automata)
	s.forward.stop, s.forward.stopped = m.stop, false
	s.backward.stop, s.backward.stopped = m.stop, false
	return s
}

// lineStartBefore returns the position of the first byte of the line that
// contains at. from must be the beginning of a line at or before at.
func lineStartBefore(text []byte, from, at int) int {
	return from + bytes.LastIndexByte(text[from:at], '\n') + 1
}

// lineEndAfter returns the position after the ending of the line that contains
// at.
func lineEndAfter(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// Next returns the first hit at or after from, and false if no more lines
// match. from must be the beginning of a line or the end of the text. Unless
// the matcher crosses lines, text may be any run of whole lines of a file.
func (m *Matcher) Next(text []byte, from int) (MatchedLines, bool) {
	if from >= len(text) {
		return MatchedLines{}, false
	}
	s := m.takeAutomata()
	defer m.pool.Put(s)
	return m.nextMatchedLines(s, text, from)
}

// Count returns the number of hits in text.
func (m *Matcher) Count(text []byte) int {
	n, _ := m.CountWithStarts(text, 0, nil)
	return n
}

// CountWithStarts is like Count, and also returns the starts of the first hits:
// it appends them, with base added, to starts, up to its capacity.
func (m *Matcher) CountWithStarts(text []byte, base int, starts []int) (n int, allStarts []int) {
	m = m.ForText(text)
	s := m.takeAutomata()
	defer m.pool.Put(s)
	for at := 0; at < len(text); n++ {
		hit, ok := m.nextMatchedLines(s, text, at)
		if !ok {
			break
		}
		if len(starts) < cap(starts) {
			starts = append(starts, base+hit.Start)
		}
		at = hit.End
	}
	return n, starts
}

// nextMatchedLines is Next with automata, in the fastest way for the pattern. It
// returns false if no more lines match.
func (m *Matcher) nextMatchedLines(s *automata, text []byte, from int) (MatchedLines, bool) {
	switch {
	case m.crossesLines:
		return m.nextMultiline(s, text, from)
	case m.finder != nil:
		return m.nextByLiteral(s, text, from)
	}
	return m.nextByAutomaton(s, text, from)
}

// nextByAutomaton is Next for a pattern whose matches are within lines. It runs the
// automaton over all of the text. It returns false if no more lines match.
func (m *Matcher) nextByAutomaton(s *automata, text []byte, from int) (MatchedLines, bool) {
	end := s.forward.findEnd(text, from, attrEdge, true)
	if end < 0 || end == len(text) && text[end-1] == '\n' {
		return MatchedLines{}, false
	}
	return MatchedLines{lineStartBefore(text, from, end), lineEndAfter(text, end)}, true
}

// nextByLiteral is nextByAutomaton for a pattern with a finder: it only runs
// the automaton over the lines with a required literal. If many of these lines
// do not match and they are close together, it continues with nextByAutomaton.
func (m *Matcher) nextByLiteral(s *automata, text []byte, from int) (MatchedLines, bool) {
	const maxFailed, dense = 64, 128
	for start, failed := from, 0; from < len(text) && !s.forward.stopped; failed++ {
		if failed >= maxFailed && from-start < failed*dense {
			hit, ok := m.nextByAutomaton(s, text, from)
			if !ok {
				hit.End = len(text)
			}
			m.reportInvalidUTF8(text[from:hit.End])
			return hit, ok
		}
		at, sure := m.finder.find(text, from)
		if at < 0 {
			break
		}
		hit := MatchedLines{lineStartBefore(text, from, at), lineEndAfter(text, at)}
		m.reportInvalidUTF8(text[hit.Start:hit.End])
		if m.literalSuffices && sure || s.forward.findEnd(m.lineWithoutEnding(text, hit), 0, attrEdge, true) >= 0 {
			return hit, true
		}
		from = hit.End
	}
	return MatchedLines{}, false
}

// lineWithoutEnding returns the hit's line, without \n and, if \r\n is one line
// ending, without \r.
func (m *Matcher) lineWithoutEnding(text []byte, h MatchedLines) []byte {
	line := text[h.Start:h.End]
	n := len(line)
	if n == 0 || line[n-1] != '\n' {
		return line
	}
	if m.crlf && n > 1 && line[n-2] == '\r' {
		return line[:n-2]
	}
	return line[:n-1]
}

// nextMultiline is Next for a pattern that crosses lines. The hit has the lines of the
// next match and of all matches that begin in these lines. found is false if no more
// lines match.
func (m *Matcher) nextMultiline(s *automata, text []byte, from int) (hit MatchedLines, found bool) {
	if m.finder != nil {
		if at, _ := m.finder.find(text, from); at < 0 {
			return hit, false
		}
	}
	for at, to := from, len(text)+1; ; to = hit.End {
		start, end, ok := m.firstMatch(s, text, at, to)
		if !ok || start == len(text) && text[start-1] == '\n' {
			return hit, found
		}
		if !found {
			hit.Start = lineStartBefore(text, from, start)
		}
		if !found || end > hit.End {
			if hit.End = end; end == hit.Start || text[end-1] != '\n' {
				hit.End = lineEndAfter(text, end)
			}
		}
		found = true
		if at = end; start == end {
			if at == len(text) {
				return hit, found
			}
			_, size := m.forward.alphabet.symbolAfter(text, at)
			at += size
		}
	}
}

// EachMatch calls yield with the start and end of each match in a hit, until
// yield returns false. Matches are in order and do not overlap; empty ones are
// included.
func (m *Matcher) EachMatch(text []byte, h MatchedLines, yield func(start, end int) bool) {
	s := m.takeAutomata()
	defer m.pool.Put(s)
	if m.crossesLines {
		m.eachMatch(s, text, h.Start, h.End, yield)
		return
	}
	line := m.lineWithoutEnding(text, h)
	m.eachMatch(s, line, 0, len(line)+1, func(start, end int) bool { return yield(h.Start+start, h.Start+end) })
}

// eachMatch calls yield for the matches that begin at or after from and before
// to, until it returns false. It skips an empty match that touches the previous
// match.
func (m *Matcher) eachMatch(s *automata, text []byte, from, to int, yield func(start, end int) bool) {
	last := -1
	for at := from; at <= len(text); {
		start, end, ok := m.firstMatch(s, text, at, to)
		if !ok {
			return
		}
		none := start == end && (end == last || m.forward.byBytes && isInsideCharacter(text, end))
		if !none && !yield(start, end) {
			return
		}
		if last, at = end, end; start == end {
			if at == len(text) {
				return
			}
			_, size := m.forward.alphabet.symbolAfter(text, at)
			at += size
		}
	}
}

// firstMatch returns the start and end of the first match that begins at or
// after at and before to. ok is false if there is no such match, or if the
// search was stopped.
func (m *Matcher) firstMatch(s *automata, text []byte, at, to int) (start, end int, ok bool) {
	if m.literalSuffices && m.finder.isSingleLong() {
		n := &m.finder.needles[0]
		start = n.find(text, at, to)
		s.forward.addWork(1 + (max(start, at)-at)/16)
		return start, start + len(n.text), start >= 0 && !s.forward.stopped
	}
	if end = s.forward.findEnd(text, at, m.forward.attrBefore(text, at), false); end < 0 {
		return 0, 0, false
	}
	start = s.backward.findStart(text, end, at)
	return start, end, start >= 0 && start < to
}

// isInsideCharacter reports whether at is between two bytes of one character of
// text.
func isInsideCharacter(text []byte, at int) bool {
	for i := at - 1; i >= 0 && i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			_, size := utf8.DecodeRune(text[i:])
			return i+size > at
		}
	}
	return false
}
