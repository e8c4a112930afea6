package search

import "slices"

// WithoutLiterals returns an equivalent matcher that matches every line.
func (m *Matcher) WithoutLiterals() *Matcher {
	plain := *m
	plain.finder, plain.startFinder, plain.literalSuffices = nil, nil, false
	plain.pool = newAutomataPool(&plain)
	return &plain
}

// HasFinder reports whether the matcher looks for literals first.
func (m *Matcher) HasFinder() bool { return m.finder != nil }

// Pure reports whether an occurrence of the literal needs no matching.
func (m *Matcher) Pure() bool {
	return m.literalSuffices && !slices.ContainsFunc(m.finder.needles, func(n needle) bool { return !n.sure })
}

// CRLF reports whether the matcher treats \r\n as one line ending.
func (m *Matcher) CRLF() bool { return m.crlf }

// PairFinder is nextPair for two bytes; if fold is set, letters match in any
// case.
type PairFinder func(a, b []byte, from int, first, second byte, fold bool) (at int, mask uint64)

// NextPair is this machine's implementation, NextPairWords the portable one.
var NextPair, NextPairWords PairFinder = pairFinder(nextPair), pairFinder(nextPairWords)

func pairFinder(next func(a, b []byte, i int, v *[2]u64, keep u64) (int, u64)) PairFinder {
	return func(a, b []byte, from int, first, second byte, fold bool) (int, uint64) {
		keep := ^u64(0)
		if fold {
			keep = ^u64(ones * 0x20)
		}
		return next(a, b, from, &[2]u64{ones * u64(first), ones * u64(second)}, keep)
	}
}

// FindPair returns the position of a literal, found by two of its bytes.
func FindPair(literal string, text []byte) int {
	n := newNeedle([]byte(literal), false, true)
	return n.findPair(text, 0, len(text)-len(literal)+1)
}

// FindNeedle returns the position of a literal, found as in searches. If steady
// is set, it uses the method for texts in which near matches are everywhere.
func FindNeedle(literal string, fold, steady bool, text []byte) int {
	n := newNeedle([]byte(literal), fold, true)
	if steady {
		return n.findKMP(text, 0, len(text)-len(literal)+1)
	}
	return n.find(text, 0, len(text))
}
