package search

import "slices"

// WithoutLiterals returns a matcher that does the same but looks at every
// line.
func (m *Matcher) WithoutLiterals() *Matcher {
	plain := *m
	plain.finder, plain.starts, plain.pure = nil, nil, false
	plain.scratch = newScratch(&plain)
	return &plain
}

// HasFinder reports whether the matcher looks for literals first.
func (m *Matcher) HasFinder() bool { return m.finder != nil }

// Pure reports whether a literal that is found needs no matching.
func (m *Matcher) Pure() bool {
	return m.pure && !slices.ContainsFunc(m.finder.needles, func(n needle) bool { return !n.sure })
}

// CRLF reports whether the matcher takes \r\n for one line ending.
func (m *Matcher) CRLF() bool { return m.crlf }

// PairFinder is nextPair for two bytes; with fold, letters match in any case.
type PairFinder func(a, b []byte, from int, first, second byte, fold bool) (at int, mask uint64)

// NextPair and NextPairWords are the machine's way and the one of any machine.
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

// FindPair returns where a literal begins, looked for by two of its bytes.
func FindPair(literal string, text []byte) int {
	n := newNeedle([]byte(literal), false, true)
	return n.findPair(text, 0, len(text)-len(literal)+1)
}

// FindNeedle returns where a literal begins, looked for as searches do. With
// steady, it is looked for as in texts that it nearly stands in
// everywhere.
func FindNeedle(literal string, fold, steady bool, text []byte) int {
	n := newNeedle([]byte(literal), fold, true)
	if steady {
		return n.findSteadily(text, 0, len(text)-len(literal)+1)
	}
	return n.find(text, 0, len(text))
}
