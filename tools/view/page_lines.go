package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// pageLines collects the shown lines.
type pageLines struct {
	first, limit int64           // first and limit are the range: from the line first, at most limit lines.
	fromEnd      bool            // if too many lines are in the range, show the last ones
	maxBytes     int             // space for the lines
	maxChars     int             // largest number of characters shown of a line
	minified     bool            // most lines are longer than maxChars, which therefore is minifiedChars
	last         int64           // the last line shown
	text         strings.Builder // the rendered lines
	ranges       []state.Range   // lines shown completely
	cutLines     []textfile.Line // the first five lines that were cut
	cutCount     int             // lines that were cut
	hidden       hiddenCharacters
}

// formatLine renders a line, with its number right-aligned in width columns.
// Callers keep width as small as the page allows, because padding costs tokens
// in every line.
func formatLine(l textfile.Line, width int) string {
	return fmt.Sprintf("%*d\t%s\n", width, l.Number, l.Text)
}

// digitCount returns the number of decimal digits of n.
func digitCount(n int64) int { return len(strconv.FormatInt(n, 10)) }

const (
	// minifiedChars bounds the shown characters of each line if most lines
	// are too long. The beginnings of a bundle's lines show its kind, and
	// their rest would fill the budget.
	minifiedChars = 200
	// A range of at most closeLookLines lines of a minified file is shown
	// with DefaultMaxChars per line.
	closeLookLines = 4
)

// renderFrom reads and renders lines of p until the limit is reached or
// maxBytes are full, but at least one line.
func (b *pageLines) renderFrom(p *textPage) error {
	// Even a small budget must have room for a line of the full length.
	b.maxChars = min(textfile.DefaultMaxChars, max(16, (b.maxBytes-8)/4))
	lines, err := b.readLines(p)
	if err == nil && b.maxChars > minifiedChars && areMostCut(lines) && !(p.selectsPart() && b.limit <= closeLookLines) {
		b.maxChars, b.minified = minifiedChars, true
		lines, err = b.readLines(p)
	}
	if err != nil || len(lines) == 0 {
		return err
	}
	b.first, b.last = lines[0].Number, lines[len(lines)-1].Number
	for _, l := range lines {
		b.addLine(l)
	}
	return nil
}

// areMostCut reports whether more than half of the lines were cut.
func areMostCut(lines []textfile.Line) bool {
	cut := 0
	for _, l := range lines {
		if l.Cut {
			cut++
		}
	}
	return 2*cut > len(lines)
}

// readLines reads the lines that fit, each up to maxChars characters.
func (b *pageLines) readLines(p *textPage) (lines []textfile.Line, err error) {
	size, width := 0, digitCount(p.index.Lines)
	err = p.index.EachLine(p.source, b.first, b.maxChars, func(l textfile.Line) bool {
		if l.Number >= b.first+b.limit {
			return false
		}
		size += len(formatLine(l, width))
		for b.fromEnd && size > b.maxBytes && len(lines) > 0 {
			size -= len(formatLine(lines[0], width))
			lines = lines[1:]
		}
		if size > b.maxBytes && len(lines) > 0 {
			return false
		}
		lines = append(lines, l)
		return true
	})
	return lines, err
}

// addLine renders l, appends it to the text, and counts it if it was cut.
func (b *pageLines) addLine(l textfile.Line) {
	b.text.WriteString(formatLine(l, digitCount(b.last)))
	b.hidden.count(l)
	if !l.Cut {
		b.recordSeen(l)
		return
	}
	b.cutCount++
	if len(b.cutLines) < 5 {
		b.cutLines = append(b.cutLines, l)
	}
}

// recordSeen adds l, a line that was shown completely, to b.ranges.
func (b *pageLines) recordSeen(l textfile.Line) {
	if n := len(b.ranges); n > 0 && b.ranges[n-1].Last+1 == l.Number {
		r := &b.ranges[n-1]
		r.Last, r.Sums = l.Number, append(r.Sums, l.Sum)
		return
	}
	b.ranges = append(b.ranges, state.Range{First: l.Number, Last: l.Number, Sums: []uint32{l.Sum}})
}

// notes describes differences between the shown lines and the file.
func (b *pageLines) notes(p *textPage) (notes []string) {
	if b.cutCount > 0 {
		var which []string
		for _, l := range b.cutLines {
			which = append(which, fmt.Sprintf("%d (%d bytes from byte %d)", l.Number, l.Size, l.Offset))
		}
		more := ""
		if b.cutCount > len(b.cutLines) {
			more = fmt.Sprintf(" and %d more", b.cutCount-len(b.cutLines))
		}
		how := ""
		if b.minified {
			how = fmt.Sprintf("most lines are long (minified code?): offset=%d limit=1 shows %d characters of a line; ", b.cutLines[0].Number, textfile.DefaultMaxChars)
		}
		notes = append(notes, fmt.Sprintf("cut after %d characters: line %s%s; %sgrep -o finds parts of a line, hex=true with a byte offset shows any part",
			b.maxChars, strings.Join(which, ", "), more, how))
	}
	if p.index.Invalid > 0 {
		notes = append(notes, fmt.Sprintf("not valid %s, shown as U+FFFD: %s of the file", p.index.Encoding, textfmt.Count(p.index.Invalid, "byte")))
	}
	return append(notes, b.hidden.notes()...)
}
