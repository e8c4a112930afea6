package search

import (
	"bytes"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// finder finds occurrences of any of several literals. It searches for the
// rarest bytes of each literal: for a single byte if it is rare enough to jump
// between its occurrences, otherwise for two bytes together, at many positions
// at a time.
type finder struct {
	needles        []needle // one for each literal, and hints
	atLiteralStart bool     // each found position is the beginning of a literal
	ascii          bool     // all literals are ASCII
	cost           float64  // estimated nanoseconds for each byte, including the lines to match
}

// Measured costs, in nanoseconds. They only decide which method is used.
// costPairScan depends on the machine.
const (
	costByteScan  = 0.035 // for each byte
	costCandidate = 15    // for each candidate position
	costLine      = 90    // for matching a line
	costDFA       = 1.8   // for each byte
)

// newFinder returns a finder for a non-empty set, or nil if matching every line
// is as fast. The lines that it finds must still be matched, unless suffices is
// set.
func newFinder(set []Literal, suffices bool) *finder {
	f := &finder{atLiteralStart: true, ascii: true}
	var withS, withK bool
	for _, l := range set {
		n := newNeedle(l.Text, l.Fold, !l.overmatches)
		f.needles = append(f.needles, n)
		f.ascii = f.ascii && textfile.IsASCII(l.Text)
		withS = withS || l.Fold && bytes.IndexByte(l.Text, 's') >= 0
		withK = withK || l.Fold && bytes.IndexByte(l.Text, 'k') >= 0
		if f.cost += n.cost(); !suffices || l.overmatches {
			f.cost += costLine * n.occurrenceRate()
		}
	}
	if withS {
		f.addHint(longS)
	}
	if withK {
		f.addHint(kelvin)
	}
	if f.cost > costDFA && !(suffices && f.isSingleLong()) {
		return nil
	}
	return f
}

// isSingleLong reports whether the finder finds exactly one literal of more
// than shortNeedle bytes, without hints.
func (f *finder) isSingleLong() bool {
	return len(f.needles) == 1 && f.needles[0].sure && f.needles[0].borders != nil
}

// addHint makes the finder also find a character that may be part of a folded
// literal.
func (f *finder) addHint(r rune) {
	n := newNeedle([]byte(string(r)), false, false)
	f.needles = append(f.needles, n)
	f.cost += n.cost()
	f.atLiteralStart = false
}

// find returns a position in the first line at or after from that contains a
// literal, and -1 if there is none. from must be in the line to begin with.
// sure is false if the literal may be missing there, or implies less than the
// pattern.
func (f *finder) find(text []byte, from int) (at int, sure bool) {
	if len(f.needles) == 1 {
		n := &f.needles[0]
		return n.find(text, from, len(text)), n.sure
	}
	// Search part of the text for all needles before the next part, so that a
	// needle that does not occur is not searched through the whole text for
	// each other that does.
	for part := 512; from < len(text); part = min(2*part, 1<<14) {
		end, best := min(from+part, len(text)), -1
		for i := range f.needles {
			n := &f.needles[i]
			if at := n.find(text, from, end); at >= 0 {
				best, end, sure = at, at, n.sure
			}
		}
		if best >= 0 {
			return best, sure
		}
		from = end
	}
	return -1, false
}
