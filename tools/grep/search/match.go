package search

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// scratch holds the automata of one search.
type scratch struct{ forward, backward *dfa }

func newScratch(m *Matcher) *sync.Pool {
	return &sync.Pool{New: func() any {
		s := &scratch{forward: newDFA(m.forward, false), backward: newDFA(m.backward, true)}
		s.forward.skip = m.starts
		return s
	}}
}

func (m *Matcher) take() *scratch {
	s := m.scratch.Get().(*scratch)
	s.forward.stop, s.forward.stopped = m.stop, false
	s.backward.stop, s.backward.stopped = m.stop, false
	return s
}

func lineStartBefore(text []byte, from, at int) int {
	return from + bytes.LastIndexByte(text[from:at], '\n') + 1
}

// lineEndBehind returns the position after the ending of the line that contains
// at.
func lineEndBehind(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// Next returns the first hit at or after from, which must be the beginning of a
// line (or the end of the text). Unless the matcher crosses lines, text may be
// any run of whole lines of a file.
func (m *Matcher) Next(text []byte, from int) (Hit, bool) {
	if from >= len(text) {
		return Hit{}, false
	}
	s := m.take()
	defer m.scratch.Put(s)
	return m.next(s, text, from)
}

// Count returns the number of hits in text.
func (m *Matcher) Count(text []byte) int {
	n, _ := m.Locate(text, 0, nil)
	return n
}

// Locate is Count that also returns the starts of the first hits: it appends
// them, with base added, to starts up to its capacity.
func (m *Matcher) Locate(text []byte, base int, starts []int) (n int, _ []int) {
	m = m.For(text)
	s := m.take()
	defer m.scratch.Put(s)
	for at := 0; at < len(text); n++ {
		hit, ok := m.next(s, text, at)
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

func (m *Matcher) next(s *scratch, text []byte, from int) (Hit, bool) {
	switch {
	case m.crosses:
		return m.nextBlock(s, text, from)
	case m.finder != nil:
		return m.nextCandidate(s, text, from)
	}
	return m.nextLine(s, text, from)
}

func (m *Matcher) nextLine(s *scratch, text []byte, from int) (Hit, bool) {
	end := s.forward.forward(text, from, attrEdge, true)
	if end < 0 || end == len(text) && text[end-1] == '\n' {
		return Hit{}, false
	}
	return Hit{lineStartBefore(text, from, end), lineEndBehind(text, end)}, true
}

// nextCandidate matches only the lines with a required literal, unless those
// turn out to be nearly all lines.
func (m *Matcher) nextCandidate(s *scratch, text []byte, from int) (Hit, bool) {
	const patience, dense = 64, 128
	for start, failed := from, 0; from < len(text) && !s.forward.stopped; failed++ {
		if failed >= patience && from-start < failed*dense {
			hit, ok := m.nextLine(s, text, from)
			if !ok {
				hit.End = len(text)
			}
			m.note(text[from:hit.End])
			return hit, ok
		}
		at, sure := m.finder.find(text, from)
		if at < 0 {
			break
		}
		hit := Hit{lineStartBefore(text, from, at), lineEndBehind(text, at)}
		m.note(text[hit.Start:hit.End])
		if m.pure && sure || s.forward.forward(m.lineOf(text, hit), 0, attrEdge, true) >= 0 {
			return hit, true
		}
		from = hit.End
	}
	return Hit{}, false
}

// lineOf returns a line without its ending.
func (m *Matcher) lineOf(text []byte, h Hit) []byte {
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

// nextBlock returns the lines of the next match and of the matches that begin
// in the same lines.
func (m *Matcher) nextBlock(s *scratch, text []byte, from int) (hit Hit, found bool) {
	if m.finder != nil {
		if at, _ := m.finder.find(text, from); at < 0 {
			return hit, false
		}
	}
	for at, to := from, len(text)+1; ; to = hit.End {
		start, end, ok := m.match(s, text, at, to)
		if !ok || start == len(text) && text[start-1] == '\n' {
			return hit, found
		}
		if !found {
			hit.Start = lineStartBefore(text, from, start)
		}
		if !found || end > hit.End {
			if hit.End = end; end == hit.Start || text[end-1] != '\n' {
				hit.End = lineEndBehind(text, end)
			}
		}
		found = true
		if at = end; start == end {
			if at == len(text) {
				return hit, found
			}
			_, size := m.forward.symbols.after(text, at)
			at += size
		}
	}
}

// Spans calls yield with the start and end of each match in a hit, in order and
// without overlap, including empty ones, until it returns false.
func (m *Matcher) Spans(text []byte, h Hit, yield func(start, end int) bool) {
	s := m.take()
	defer m.scratch.Put(s)
	if m.crosses {
		m.spans(s, text, h.Start, h.End, yield)
		return
	}
	line := m.lineOf(text, h)
	m.spans(s, line, 0, len(line)+1, func(start, end int) bool { return yield(h.Start+start, h.Start+end) })
}

// spans yields the matches that begin at or after from and before to. An empty
// match that touches the previous one is skipped.
func (m *Matcher) spans(s *scratch, text []byte, from, to int, yield func(start, end int) bool) {
	last := -1
	for at := from; at <= len(text); {
		start, end, ok := m.match(s, text, at, to)
		if !ok {
			return
		}
		none := start == end && (end == last || m.forward.bytes && insideCharacter(text, end))
		if !none && !yield(start, end) {
			return
		}
		if last, at = end, end; start == end {
			if at == len(text) {
				return
			}
			_, size := m.forward.symbols.after(text, at)
			at += size
		}
	}
}

// match returns the start and end of the first match from at on that begins
// before to. ok is false if there is no such match, or if the search was
// stopped.
func (m *Matcher) match(s *scratch, text []byte, at, to int) (start, end int, ok bool) {
	if m.pure && m.finder.single() {
		n := &m.finder.needles[0]
		start = n.find(text, at, to)
		s.forward.work(1 + (max(start, at)-at)/16)
		return start, start + len(n.text), start >= 0 && !s.forward.stopped
	}
	if end = s.forward.forward(text, at, m.forward.attrBefore(text, at), false); end < 0 {
		return 0, 0, false
	}
	start = s.backward.backward(text, end, at)
	return start, end, start >= 0 && start < to
}

// insideCharacter reports whether at is between two bytes of one character.
func insideCharacter(text []byte, at int) bool {
	for i := at - 1; i >= 0 && i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			_, size := utf8.DecodeRune(text[i:])
			return i+size > at
		}
	}
	return false
}
