package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// body collects the shown lines.
type body struct {
	first, limit int64
	fromEnd      bool // if too many lines fit the range, show the last ones
	room         int  // space for the lines in bytes
	chars        int  // largest number of characters shown of a line
	minified     bool // most lines are longer than chars, so chars is minifiedChars
	last         int64
	text         strings.Builder
	ranges       []state.Range
	cut          []textfile.Line // the first five lines that were cut
	cuts         int
	strange      strange
}

// row renders a line, with its number right-aligned in width columns. Callers
// keep width as small as the page allows, because padding costs tokens in every
// line.
func row(l textfile.Line, width int) string {
	return fmt.Sprintf("%*d\t%s\n", width, l.Number, l.Text)
}

func digits(n int64) int { return len(strconv.FormatInt(n, 10)) }

const (
	// minifiedChars bounds the shown lines if most of them are too long, in
	// characters. The beginnings of a bundle's lines show its kind, and
	// their rest would fill the budget.
	minifiedChars = 200
	// closeLook: a range of at most this many lines of a minified file is
	// shown with DefaultMaxChars per line.
	closeLook = 4
)

// fill renders lines until the limit or the room is reached, but at least one.
func (b *body) fill(p *page) error {
	// Even a small budget must have room for a line of the full length.
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

// add renders a line.
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

// seen records a line that was shown completely.
func (b *body) seen(l textfile.Line) {
	if n := len(b.ranges); n > 0 && b.ranges[n-1].Last+1 == l.Number {
		r := &b.ranges[n-1]
		r.Last, r.Sums = l.Number, append(r.Sums, l.Sum)
		return
	}
	b.ranges = append(b.ranges, state.Range{First: l.Number, Last: l.Number, Sums: []uint32{l.Sum}})
}

// notes describes differences between the shown lines and the file.
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
