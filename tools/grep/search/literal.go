package search

import (
	"bytes"
	"slices"
)

// Literal is text that occurs in every match.
type Literal struct {
	Text []byte // not empty in results; ASCII letters are in lower case if Fold is set
	Fold bool   // ASCII letters match in any case; k and s also match U+212A and U+017F, which fold to them

	overmatches bool // it also matches texts that the pattern does not match
}

// The non-ASCII characters that fold to s and k.
const (
	longS  = '\u017F'
	kelvin = '\u212A'
)

// Limits of literals.
const (
	maxAlternatives = 64   // literals in a set
	maxSetBytes     = 4096 // bytes of the literals in a set
	maxClassMembers = 12   // members of a class that become separate literals
	maxInnerSets    = 16   // inner sets of a part
)

// literalSets describes the texts that a part of a pattern matches. Every set
// is complete: each match has one of its members, with all its bytes, at that
// place. A member may be empty. A literal may match more than the pattern does
// (it may be folded although the pattern is not).
type literalSets struct {
	exact  []Literal   // the part matches exactly these; nil: the other fields apply
	prefix []Literal   // beginnings of its matches
	suffix []Literal   // ends of its matches
	inner  [][]Literal // sets of texts anywhere in its matches
}

// anyText returns the sets of a part that may match any text.
func anyText() literalSets {
	return literalSets{prefix: []Literal{{}}, suffix: []Literal{{}}}
}

// prefixes returns the texts with which a match may begin.
func (l literalSets) prefixes() []Literal {
	if l.exact != nil {
		return l.exact
	}
	return l.prefix
}

// suffixes returns the texts with which a match may end.
func (l literalSets) suffixes() []Literal {
	if l.exact != nil {
		return l.exact
	}
	return l.suffix
}

// required returns every useful set. A useful set has no empty member, and no
// other set implies it.
func (l literalSets) required() [][]Literal {
	all := l.inner
	if l.exact != nil {
		all = slices.Concat([][]Literal{l.exact}, all)
	} else {
		all = slices.Concat([][]Literal{l.prefix, l.suffix}, all)
	}
	var out [][]Literal
	for i, set := range all {
		if len(set) == 0 || slices.ContainsFunc(set, func(x Literal) bool { return len(x.Text) == 0 }) {
			continue
		}
		said := false
		for j, other := range all {
			said = said || i != j && implies(other, set) && (j < i || !implies(set, other))
		}
		if !said {
			out = append(out, set)
		}
	}
	return out
}

// implies reports whether every text with a member of set also has a member of
// other. It is false in doubt.
func implies(set, other []Literal) bool {
	for _, l := range set {
		if !slices.ContainsFunc(other, func(m Literal) bool { return l.Fold == m.Fold && bytes.Contains(l.Text, m.Text) }) {
			return false
		}
	}
	return len(set) > 0
}

// withoutDuplicates returns the different members of a set. A duplicate that
// does not overmatch takes precedence.
func withoutDuplicates(set []Literal) []Literal {
	var out []Literal
	seen := map[string]int{} // index in out plus 1, by text
	for _, l := range set {
		key := string(l.Text)
		if l.Fold {
			key += "\x00fold"
		}
		if at := seen[key]; at > 0 {
			out[at-1].overmatches = out[at-1].overmatches && l.overmatches
			continue
		}
		out = append(out, l)
		seen[key] = len(out)
	}
	return out
}

// followedBy returns the literal sets of a match of l followed by a match of m.
func (l literalSets) followedBy(m literalSets) literalSets {
	if l.exact != nil && m.exact != nil {
		if both := crossProduct(l.exact, m.exact); both != nil {
			return literalSets{exact: both}
		}
	}
	out := literalSets{prefix: l.prefixes(), suffix: m.suffixes(), inner: slices.Concat(l.inner, m.inner)}
	if l.exact != nil {
		if longer := crossProduct(l.exact, m.prefixes()); longer != nil {
			out.prefix = longer
		}
	}
	if m.exact != nil {
		if longer := crossProduct(l.suffixes(), m.exact); longer != nil {
			out.suffix = longer
		}
	}
	if l.exact == nil {
		middle := crossProduct(l.suffix, m.prefixes())
		if middle == nil {
			middle = l.suffix
		}
		if !slices.ContainsFunc(middle, func(x Literal) bool { return len(x.Text) == 0 }) {
			out.inner = append(out.inner, middle)
		}
	}
	return out.applyLimits()
}

// either returns the literal sets of an alternative between l and m.
func (l literalSets) either(m literalSets) literalSets {
	if l.exact != nil && m.exact != nil && len(l.exact)+len(m.exact) <= 4*maxAlternatives {
		return literalSets{exact: withoutDuplicates(slices.Concat(l.exact, m.exact))}
	}
	out := literalSets{
		prefix: withoutDuplicates(slices.Concat(l.prefixes(), m.prefixes())),
		suffix: withoutDuplicates(slices.Concat(l.suffixes(), m.suffixes())),
	}
	if left, right := mostSelective(l.required()), mostSelective(m.required()); left != nil && right != nil {
		out.inner = [][]Literal{withoutDuplicates(slices.Concat(left, right))}
	}
	return out.applyLimits()
}

// applyLimits returns l within the limits: it replaces large sets of prefixes and suffixes
// by one that says nothing, and drops large inner sets and the least selective ones beyond
// maxInnerSets.
func (l literalSets) applyLimits() literalSets {
	if len(l.prefix) > 4*maxAlternatives {
		l.prefix = []Literal{{}}
	}
	if len(l.suffix) > 4*maxAlternatives {
		l.suffix = []Literal{{}}
	}
	l.inner = slices.DeleteFunc(l.inner, func(set []Literal) bool { return len(set) > 4*maxAlternatives })
	for len(l.inner) > maxInnerSets {
		worst := 0
		for i, set := range l.inner {
			if selectivity(set) < selectivity(l.inner[worst]) {
				worst = i
			}
		}
		l.inner = slices.Delete(l.inner, worst, worst+1)
	}
	return l
}

// mostSelective returns the set with the highest selectivity, or nil if there
// are no sets.
func mostSelective(sets [][]Literal) []Literal {
	var out []Literal
	for _, set := range sets {
		if out == nil || selectivity(set) > selectivity(out) {
			out = set
		}
	}
	return out
}

// selectivity returns a higher number the longer the shortest member of a set
// is, up to 8 bytes. Among equals, it is higher the fewer members the set has.
func selectivity(set []Literal) int {
	shortest := maxSetBytes
	for _, l := range set {
		shortest = min(shortest, len(l.Text))
	}
	return min(shortest, 8)*1000 - len(set)
}

// commonAffixes returns, for each set of at least three literals, the beginning
// and end that all its members have in common. These are faster to find than
// many members.
func commonAffixes(sets [][]Literal) (out [][]Literal) {
	for _, set := range sets {
		if len(set) < 3 {
			continue
		}
		head, tail := set[0].Text, set[0].Text
		for _, l := range set[1:] {
			if l.Fold != set[0].Fold {
				head, tail = nil, nil
			}
			n := 0
			for n < min(len(head), len(l.Text)) && head[n] == l.Text[n] {
				n++
			}
			head, n = head[:n], 0
			for n < min(len(tail), len(l.Text)) && tail[len(tail)-1-n] == l.Text[len(l.Text)-1-n] {
				n++
			}
			tail = tail[len(tail)-n:]
		}
		for _, text := range [][]byte{head, tail} {
			if len(text) > 1 {
				out = append(out, []Literal{{Text: text, Fold: set[0].Fold, overmatches: true}})
			}
		}
	}
	return out
}
