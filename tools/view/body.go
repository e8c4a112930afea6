package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// body collects the lines that are shown.
type body struct {
	first, limit int64
	fromEnd      bool // of too many lines the last ones are shown
	room         int  // bytes
	chars        int  // characters of a line
	minified     bool // most lines are longer, so that each is cut short
	last         int64
	text         strings.Builder
	ranges       []state.Range
	cut          []textfile.Line // the first of the lines that were cut
	cuts         int
	strange      strange
}

// row renders a line, its number right-aligned in width columns. Wider columns
// than the page needs would cost a model bytes in every line.
func row(l textfile.Line, width int) string {
	return fmt.Sprintf("%*d\t%s\n", width, l.Number, l.Text)
}

func digits(n int64) int { return len(strconv.FormatInt(n, 10)) }

const (
	// minifiedChars bounds each line where most are cut: the beginnings of a
	// bundle's lines tell what it is, and their rest would fill the budget.
	minifiedChars = 200
	// closeLook lines or fewer, if asked for by number, are shown up to
	// DefaultMaxChars each in a minified file too.
	closeLook = 4
)

// fill renders lines until the limit or the room is reached; one at least.
func (b *body) fill(p *page) error {
	// A line of the full length must fit a small budget, too.
	b.chars = min(textfile.DefaultMaxChars, max(16, (b.room-8)/4))
	lines, err := b.collect(p)
	if err == nil && b.chars > minifiedChars && mostAreCut(lines) && !(p.ranged() && b.limit <= closeLook) {
		b.chars, b.minified = minifiedChars, true
		lines, err = b.collect(p)
	}
	if err != nil || len(lines) == 0 {
		return err
	}
	b.first, b.last = lines[0].Number, lines[len(lines)-1].Number
	for _, l := range lines {
		b.add(l)
	}
	return nil
}

// mostAreCut reports whether more than half of the lines were cut.
func mostAreCut(lines []textfile.Line) bool {
	cut := 0
	for _, l := range lines {
		if l.Cut {
			cut++
		}
	}
	return 2*cut > len(lines)
}

// collect reads the lines that fit, each up to b.chars characters.
func (b *body) collect(p *page) (lines []textfile.Line, err error) {
	size, width := 0, digits(p.index.Lines)
	err = p.index.Each(p.source, b.first, b.chars, func(l textfile.Line) bool {
		if l.Number >= b.first+b.limit {
			return false
		}
		size += len(row(l, width))
		for b.fromEnd && size > b.room && len(lines) > 0 {
			size -= len(row(lines[0], width))
			lines = lines[1:]
		}
		if size > b.room && len(lines) > 0 {
			return false
		}
		lines = append(lines, l)
		return true
	})
	return lines, err
}

// add shows a line.
func (b *body) add(l textfile.Line) {
	b.text.WriteString(row(l, digits(b.last)))
	b.strange.count(l)
	if !l.Cut {
		b.seen(l)
		return
	}
	b.cuts++
	if len(b.cut) < 5 {
		b.cut = append(b.cut, l)
	}
}

// seen adds a line that was shown whole.
func (b *body) seen(l textfile.Line) {
	if n := len(b.ranges); n > 0 && b.ranges[n-1].Last+1 == l.Number {
		r := &b.ranges[n-1]
		r.Last, r.Sums = l.Number, append(r.Sums, l.Sum)
		return
	}
	b.ranges = append(b.ranges, state.Range{First: l.Number, Last: l.Number, Sums: []uint32{l.Sum}})
}

// notes says what is not as it looks.
func (b *body) notes(p *page) (notes []string) {
	if b.cuts > 0 {
		var which []string
		for _, l := range b.cut {
			which = append(which, fmt.Sprintf("%d (%d bytes from byte %d)", l.Number, l.Size, l.Offset))
		}
		more := ""
		if b.cuts > len(b.cut) {
			more = fmt.Sprintf(" and %d more", b.cuts-len(b.cut))
		}
		how := ""
		if b.minified {
			how = fmt.Sprintf("most lines are long (minified code?): offset=%d limit=1 shows %d characters of a line; ", b.cut[0].Number, textfile.DefaultMaxChars)
		}
		notes = append(notes, fmt.Sprintf("cut after %d characters: line %s%s; %sgrep -o finds parts of a line, hex=true with a byte offset shows any part",
			b.chars, strings.Join(which, ", "), more, how))
	}
	if p.index.Invalid > 0 {
		notes = append(notes, fmt.Sprintf("not valid %s, shown as U+FFFD: %s of the file", p.index.Encoding, textfmt.Count(p.index.Invalid, "byte")))
	}
	return append(notes, b.strange.notes()...)
}

// strange counts the characters that cannot be seen, or change how others
// look. Content is shown as it is; only the count tells a reader of them.
type strange struct {
	total int
	kinds map[rune]int
	order []rune
	first map[rune]int64
}

func (s *strange) count(l textfile.Line) {
	before := rune(0)
	for _, r := range l.Text {
		if hidden(r, before) {
			if s.kinds == nil {
				s.kinds, s.first = map[rune]int{}, map[rune]int64{}
			}
			if s.kinds[r]++; s.kinds[r] == 1 {
				s.order, s.first[r] = append(s.order, r), l.Number
			}
			s.total++
		}
		before = r
	}
}

// hidden reports whether r is a control or an invisible character. The
// joiners are part of ordinary writing, unless they stand beside ASCII.
func hidden(r, before rune) bool {
	switch {
	case r < 0x20:
		return r != '\t'
	case r < 0x7F:
		return false
	case r < 0xA0, r == 0xAD, r == 0x180E, r >= 0xE0000 && r < 0xE0080:
		return true
	case r == 0x200C, r == 0x200D:
		return before < 0x80
	}
	return r >= 0x2000 && unicode.Is(unicode.Cf, r)
}

func (s *strange) notes() []string {
	if s.total == 0 {
		return nil
	}
	const named = 6
	var kinds []string
	for _, r := range s.order[:min(named, len(s.order))] {
		kinds = append(kinds, fmt.Sprintf("U+%04X %d (first in line %d)", r, s.kinds[r], s.first[r]))
	}
	if more := len(s.order) - named; more > 0 {
		kinds = append(kinds, fmt.Sprintf("%d other kinds", more))
	}
	return []string{fmt.Sprintf("%s in these lines: %s", textfmt.Count(s.total, "control or invisible character"), strings.Join(kinds, ", "))}
}
