package match

import (
	"hash/maphash"

	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// place is a range of the file's text that a pattern matches, as offsets.
type place struct{ start, end int }

// findExact yields the places of text, byte for byte, in order, until yield
// returns false. Places do not overlap, except that with overlapSecond the
// second may overlap the first: that is enough to see that a text is not
// unique. Places that would split a line ending are skipped.
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

// splitsLineEnding reports whether the offset is between the two bytes of a
// "\r\n".
func splitsLineEnding(f *splice.File, at int) bool {
	return at > f.BodyStart && at < len(f.Text) && f.Text[at] == '\n' && f.Text[at-1] == '\r'
}

// lineCost is the cost of work on a line, in bytes scanned.
const lineCost = 64

// searchPattern yields the places of a pattern in one pass over the file, in
// order, until yield returns false. overlapSecond is as for findExact. In
// memory it holds as many lines as the pattern has.
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
			if end := p.lastLineEnd(line, plain); end >= 0 {
				before := ring[(index-k)%len(ring)]
				first := f.Text[before.start:before.end]
				firstPlain := first
				if p.step >= Punctuation {
					firstPlain, firstBuf = foldLong(checker, first, firstBuf)
				}
				if start := p.firstLineStart(first, firstPlain); start >= 0 && !yield(place{before.start + start, at + end}) {
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

// advanceMiddle returns the number of middle lines that match up to and
// including a line with plain punctuation, if matched is that number for the
// line before.
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
