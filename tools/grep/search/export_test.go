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
