package match

import (
	"hash/maphash"

	"github.com/toolroom-mcp/toolroom/tools/edit/pace"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// place is a range of the file's text that a pattern matches.
type place struct{ start, end int }

// exact yields where text stands in the file byte for byte: one after the
// other, where overlap allows the second to overlap the first. A place that
// would cut a line ending in two is none.
func exact(f *splice.File, text string, overlap bool, pace *pace.Pace, yield func(place) bool) {
	n := needle{pat: []byte(text), pace: pace}
	if len(text) == 0 || len(text) > len(f.Text)-f.Body {
		return
	}
	for at := n.next(f.Text, f.Body); at >= 0; at = n.next(f.Text, at) {
		end := at + len(text)
		if cutsEnding(f, at) || cutsEnding(f, end) {
			at++
			continue
		}
		if !yield(place{at, end}) {
			return
		}
		if overlap {
			at++
		} else {
			at = end
		}
		overlap = false
	}
}

// cutsEnding reports whether a place is between the two bytes of a line
// ending.
func cutsEnding(f *splice.File, at int) bool {
	return at > f.Body && at < len(f.Text) && f.Text[at] == '\n' && f.Text[at-1] == '\r'
}

// perLine is how many bytes looked at are worth the work on a line.
const perLine = 64

// search yields the places of a pattern, in one pass over the file's lines
// that holds no more of them than the pattern has.
func search(f *splice.File, p *pattern, overlap bool, pace *pace.Pace, yield func(place) bool) {
	if anchor := (needle{pat: p.anchor, pace: pace}); len(p.anchor) > 0 && anchor.next(f.Text, 0) < 0 {
		return
	}
	k := len(p.old) - 1
	ring := make([]place, k+1) // the last lines, without their endings
	matched := 0               // lines of the middle that the lines before match
	var buf, firstBuf, plain []byte
	for at, index := f.Body, 0; ; index++ {
		next := f.LineEnd(at)
		if pace.Over(next - at + perLine) {
			return
		}
		line := f.Content(f.Text[at:next])
		plain = line
		if p.step >= Punctuation {
			plain, buf = foldAt(pace, line, buf)
		}
		if k == 0 {
			stop := false
			p.inside(line, plain, overlap, pace, func(start, end int) bool {
				stop = !yield(place{at + start, at + end})
				return !stop
			})
			if stop {
				return
			}
		} else if index >= k && matched == len(p.middle) {
			if end := p.ends(line, plain); end >= 0 {
				before := ring[(index-k)%len(ring)]
				first := f.Text[before.start:before.end]
				firstPlain := first
				if p.step >= Punctuation {
					firstPlain, firstBuf = foldAt(pace, first, firstBuf)
				}
				if start := p.starts(first, firstPlain); start >= 0 && !yield(place{before.start + start, at + end}) {
					return
				}
			}
		}
		matched = p.advance(matched, plain)
		ring[index%len(ring)] = place{at, at + len(line)}
		if at == len(f.Text) {
			return
		}
		at = next // at the end of the text: an empty line, also where the last one has no ending
	}
}

// advance returns how many lines of the middle match up to and with a line.
func (p *pattern) advance(matched int, plain []byte) int {
	if len(p.middle) == 0 {
		return 0
	}
	sum := maphash.Bytes(p.seed, p.whole(plain))
	q := int32(matched)
	if matched == len(p.middle) {
		q = p.fail[matched]
	}
	for q >= 0 && p.middle[q] != sum {
		q = p.fail[q]
	}
	return int(q) + 1
}
