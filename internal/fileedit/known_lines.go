package fileedit

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

const (
	// maxKnownLines bounds the lines that are remembered as known.
	maxKnownLines = 20_000
	// maxTrackedChanges bounds the number of changes whose lines are remembered.
	maxTrackedChanges = 256
)

// knownLines returns the lines of the new content that the model knows. If the
// model gave the whole content, these are all lines. Otherwise they are the
// lines that it changed and, if b was the version it had seen, the lines it had
// seen, with their new numbers. index is the index of the new content.
func (a *After) knownLines(b *Before, index *textfile.Index) []state.Range {
	if index.Binary || b.Masked {
		return nil
	}
	if a.whole {
		return joinRanges(a.readLines(index, 1, maxKnownLines))
	}
	var old []knownLine
	if b.IsSeenVersion() {
		old = linesOfRanges(b.Seen.Ranges)
	}
	var known []knownLine
	ends := lineEndCounter(index.Format)
	shift, number, at := int64(0), int64(1), 0            // number is the number of the line that contains at
	if len(a.changes) > 0 && len(index.LinesBefore) > 0 { // up to the first change, both are the same
		i := min(a.changes[0].Start/int(index.Stride), len(index.LinesBefore)-1)
		number, at = index.LinesBefore[i]+1, i*int(index.Stride)
	}
	for _, c := range a.changes[:min(len(a.changes), maxTrackedChanges)] {
		number += ends(b.Content[at:c.Start])
		gone, come := ends(b.Content[c.Start:c.End]), ends([]byte(c.New))
		for len(old) > 0 && old[0].number < number {
			known = append(known, knownLine{old[0].number + shift, old[0].sum})
			old = old[1:]
		}
		for len(old) > 0 && old[0].number <= number+gone {
			old = old[1:]
		}
		known = append(known, a.readLines(index, number+shift, come+1)...)
		number, at = number+gone, c.End
		shift += come - gone
	}
	if len(a.changes) <= maxTrackedChanges {
		for _, l := range old {
			known = append(known, knownLine{l.number + shift, l.sum})
		}
	}
	return joinRanges(known)
}

// knownLine is a line that the model has seen or written: its number, from 1,
// and its textfile.LineSum.
type knownLine struct {
	number int64
	sum    uint32
}

// readLines returns count lines of the content, from line number first on, at
// most maxKnownLines. It omits lines that the tool view would cut, since view
// does not count them as seen either.
func (a *After) readLines(index *textfile.Index, first, count int64) []knownLine {
	var lines []knownLine
	count = min(count, maxKnownLines)
	// A line that cannot be read is not known.
	_ = index.EachLine(a, first, textfile.DefaultMaxChars, func(l textfile.Line) bool {
		if l.Number >= first+count {
			return false
		}
		if !l.Cut {
			lines = append(lines, knownLine{l.Number, l.Sum})
		}
		return true
	})
	return lines
}

// linesOfRanges returns the number and checksum of every line in ranges, in
// order.
func linesOfRanges(ranges []state.Range) []knownLine {
	var lines []knownLine
	for _, r := range ranges {
		for i, sum := range r.Sums {
			lines = append(lines, knownLine{r.First + int64(i), sum})
		}
	}
	return lines
}

// joinRanges joins lines, in ascending order, into ranges. It drops repeated
// numbers, which two changes in one line cause, and lines beyond maxKnownLines.
func joinRanges(lines []knownLine) []state.Range {
	var ranges []state.Range
	for _, l := range lines[:min(len(lines), maxKnownLines)] {
		n := len(ranges) - 1
		switch {
		case n >= 0 && l.number <= ranges[n].Last:
		case n >= 0 && l.number == ranges[n].Last+1:
			ranges[n].Last++
			ranges[n].Sums = append(ranges[n].Sums, l.sum)
		default:
			ranges = append(ranges, state.Range{First: l.number, Last: l.number, Sums: []uint32{l.sum}})
		}
	}
	return ranges
}

// lineEndCounter returns a function that counts the line endings in a part of a
// file of this format.
func lineEndCounter(format textfile.Format) func([]byte) int64 {
	unit := []byte{'\n'}
	if format.Ending == textfile.CR {
		unit = []byte{'\r'}
	}
	switch format.Encoding {
	case textfile.UTF16LE:
		unit = append(unit, 0)
	case textfile.UTF16BE:
		unit = append([]byte{0}, unit...)
	default:
		return func(part []byte) int64 { return int64(bytes.Count(part, unit)) }
	}
	return func(part []byte) (n int64) { // the parts consist of whole units, as changes do
		for ; len(part) >= 2; part = part[2:] {
			if part[0] == unit[0] && part[1] == unit[1] {
				n++
			}
		}
		return n
	}
}
