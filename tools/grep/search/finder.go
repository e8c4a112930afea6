package search

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// finder finds the occurrences of several literals. It looks for the rarest
// bytes of each: for a single byte if it is rare enough to jump between its
// occurrences, otherwise for two bytes together, at many positions at a time.
type finder struct {
	needles []needle
	starts  bool    // it only finds the beginnings of literals
	ascii   bool    // all literals are ASCII
	cost    float64 // estimated nanoseconds per byte, including the lines to match
}

// Measured costs of steps; they only decide which method is used. costPairScan
// depends on the machine.
const (
	costByteScan = 0.035 // nanoseconds a byte
	costStop     = 15    // nanoseconds per candidate position
	costLine     = 90    // to match a line
	costDFA      = 1.8
)

// newFinder returns a finder for a non-empty set, or nil if matching every line
// is as fast. The lines that it finds must still be matched, unless pure is
// set.
func newFinder(set []Literal, pure bool) *finder {
	f := &finder{starts: true, ascii: true}
	var withS, withK bool
	for _, l := range set {
		n := newNeedle(l.Text, l.Fold, !l.loose)
		f.needles = append(f.needles, n)
		f.ascii = f.ascii && isASCII(l.Text)
		withS = withS || l.Fold && bytes.IndexByte(l.Text, 's') >= 0
		withK = withK || l.Fold && bytes.IndexByte(l.Text, 'k') >= 0
		if f.cost += n.cost(); !pure || l.loose {
			f.cost += costLine * n.likelihood()
		}
	}
	if withS {
		f.hint(longS)
	}
	if withK {
		f.hint(kelvin)
	}
	if f.cost > costDFA && !(pure && f.single()) {
		return nil
	}
	return f
}

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b >= utf8.RuneSelf })
}

// single reports whether the finder finds exactly one long literal.
func (f *finder) single() bool {
	return len(f.needles) == 1 && f.needles[0].sure && f.needles[0].border != nil
}

// hint makes the finder also find a character that may be part of a folded
// literal.
func (f *finder) hint(r rune) {
	n := newNeedle([]byte(string(r)), false, false)
	f.needles = append(f.needles, n)
	f.cost += n.cost()
	f.starts = false
}

// find returns a position in the first line with a literal, from the line of
// from on, or -1. sure is false if the literal may be missing there, or implies
// less than the pattern.
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
