package match

import (
	"hash/maphash"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// place is a range of the file's text that matches a pattern.
type place struct{ start, end int }

// exact yields the places of text byte for byte, in order; if overlap is set,
// the second may overlap the first. Places that would split a line ending are
// skipped.
func findExact(f *splice.File, text string, overlapSecond bool, checker *cancelcheck.Checker, yield func(place) bool) {
	n := needle{pattern: []byte(text), checker: checker}
	if len(text) == 0 || len(text) > len(f.Text)-f.BodyStart {
		return
	}
	for at := n.indexFrom(f.Text, f.BodyStart); at >= 0; at = n.indexFrom(f.Text, at) {
		end := at + len(text)
		if splitsLineEnding(f, at) || splitsLineEnding(f, end) {
			at++
			continue
		}
		if !yield(place{at, end}) {
			return
		}
		if overlapSecond {
			at++
		} else {
			at = end
		}
		overlapSecond = false
	}
}

// cutsEnding reports whether a position is between the two bytes of a line
// ending.
func splitsLineEnding(f *splice.File, at int) bool {
	return at > f.BodyStart && at < len(f.Text) && f.Text[at] == '\n' && f.Text[at-1] == '\r'
}

// perLine is the cost of work on a line, in bytes scanned.
const lineCost = 64

// search yields the places of a pattern in one pass over the file. It holds as
// many lines as the pattern has.
func searchPattern(f *splice.File, p *pattern, overlapSecond bool, checker *cancelcheck.Checker, yield func(place) bool) {
	if anchor := (needle{pattern: p.requiredText, checker: checker}); len(p.requiredText) > 0 && anchor.indexFrom(f.Text, 0) < 0 {
		return
	}
	k := len(p.old) - 1
	ring := make([]place, k+1) // the last lines, without endings
	matched := 0               // lines of middle matched by the previous lines
	var buf, firstBuf, plain []byte
	for at, index := f.BodyStart, 0; ; index++ {
		next := f.LineEnd(at)
		if checker.Stopped(next - at + lineCost) {
			return
		}
		line := f.TrimEnding(f.Text[at:next])
		plain = line
		if p.step >= Punctuation {
			plain, buf = foldLong(checker, line, buf)
		}
		if k == 0 {
			stop := false
			p.findWithinLine(line, plain, overlapSecond, checker, func(start, end int) bool {
				stop = !yield(place{at + start, at + end})
				return !stop
			})
			if stop {
				return
			}
		} else if index >= k && matched == len(p.middleHashes) {
			if end := p.endOffset(line, plain); end >= 0 {
				before := ring[(index-k)%len(ring)]
				first := f.Text[before.start:before.end]
				firstPlain := first
				if p.step >= Punctuation {
					firstPlain, firstBuf = foldLong(checker, first, firstBuf)
				}
				if start := p.startOffset(first, firstPlain); start >= 0 && !yield(place{before.start + start, at + end}) {
					return
				}
			}
		}
		matched = p.advanceMiddle(matched, plain)
		ring[index%len(ring)] = place{at, at + len(line)}
		if at == len(f.Text) {
			return
		}
		at = next // at the end of the text there is an empty line, even if the last line has no ending
	}
}

// advance returns the number of lines of middle matched up to and including a
// line.
func (p *pattern) advanceMiddle(matched int, plain []byte) int {
	if len(p.middleHashes) == 0 {
		return 0
	}
	sum := maphash.Bytes(p.seed, p.comparedPart(plain))
	q := int32(matched)
	if matched == len(p.middleHashes) {
		q = p.middleFailure[matched]
	}
	for q >= 0 && p.middleHashes[q] != sum {
		q = p.middleFailure[q]
	}
	return int(q) + 1
}
