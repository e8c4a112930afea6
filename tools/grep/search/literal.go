package search

import (
	"bytes"
	"slices"
)

// Literal is text that occurs in every match.
type Literal struct {
	Text []byte // never empty; ASCII letters in lower case, if Fold
	Fold bool   // ASCII letters match in any case, and the two non-ASCII characters that fold to k and s match, too

	loose bool // it also matches texts that the pattern does not match
}

// The non-ASCII characters that fold to s and k.
const (
	longS  = '\u017F'
	kelvin = '\u212A'
)

// Limits of literals: alternatives in a set, their total bytes, members of a
// class to try separately, and sets.
const (
	maxAlternatives = 64
	maxSetBytes     = 4096
	maxClass        = 12
	maxRequired     = 16
)

// literals is the knowledge about the texts that a part of a pattern matches.
// Every set is sound: each match has one of its members, with all its bytes, in
// that place. A member may be empty, and a literal may match more than the
// pattern (folded although the pattern is not).
type literals struct {
	exact  []Literal // if not nil, the part matches exactly these
	prefix []Literal // otherwise the beginnings of its matches
	suffix []Literal // and their ends
	inner  [][]Literal
}

// anything returns the literals of a part that may match any text.
func anything() literals {
	return literals{prefix: []Literal{{}}, suffix: []Literal{{}}}
}

func (l literals) begins() []Literal {
	if l.exact != nil {
		return l.exact
	}
	return l.prefix
}

func (l literals) ends() []Literal {
	if l.exact != nil {
		return l.exact
	}
	return l.suffix
}

// sets returns every useful set: its members are not empty, and no other set
// implies it.
func (l literals) sets() [][]Literal {
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

// implies reports whether every text with a member of set also has one of
// other.
func implies(set, other []Literal) bool {
	for _, l := range set {
		if !slices.ContainsFunc(other, func(m Literal) bool { return l.Fold == m.Fold && bytes.Contains(l.Text, m.Text) }) {
			return false
		}
	}
	return len(set) > 0
}

func distinct(set []Literal) []Literal {
	var out []Literal
	seen := map[string]int{} // index in out plus 1, by text
	for _, l := range set {
		key := string(l.Text)
		if l.Fold {
			key += "\x00fold"
		}
		if at := seen[key]; at > 0 {
			out[at-1].loose = out[at-1].loose && l.loose
			continue
		}
		out = append(out, l)
		seen[key] = len(out)
	}
	return out
}

func (l literals) then(m literals) literals {
	if l.exact != nil && m.exact != nil {
		if both := product(l.exact, m.exact); both != nil {
			return literals{exact: both}
		}
	}
	out := literals{prefix: l.begins(), suffix: m.ends(), inner: slices.Concat(l.inner, m.inner)}
	if l.exact != nil {
		if longer := product(l.exact, m.begins()); longer != nil {
			out.prefix = longer
		}
	}
	if m.exact != nil {
		if longer := product(l.ends(), m.exact); longer != nil {
			out.suffix = longer
		}
	}
	if l.exact == nil {
		middle := product(l.suffix, m.begins())
		if middle == nil {
			middle = l.suffix
		}
		if !slices.ContainsFunc(middle, func(x Literal) bool { return len(x.Text) == 0 }) {
			out.inner = append(out.inner, middle)
		}
	}
	return out.bounded()
}

// or returns the literals of an alternative of l and m.
func (l literals) or(m literals) literals {
	if l.exact != nil && m.exact != nil && len(l.exact)+len(m.exact) <= 4*maxAlternatives {
		return literals{exact: distinct(slices.Concat(l.exact, m.exact))}
	}
	out := literals{
		prefix: distinct(slices.Concat(l.begins(), m.begins())),
		suffix: distinct(slices.Concat(l.ends(), m.ends())),
	}
	if left, right := best(l.sets()), best(m.sets()); left != nil && right != nil {
		out.inner = [][]Literal{distinct(slices.Concat(left, right))}
	}
	return out.bounded()
}

// bounded drops sets that exceed the limits.
func (l literals) bounded() literals {
	if len(l.prefix) > 4*maxAlternatives {
		l.prefix = []Literal{{}}
	}
	if len(l.suffix) > 4*maxAlternatives {
		l.suffix = []Literal{{}}
	}
	l.inner = slices.DeleteFunc(l.inner, func(set []Literal) bool { return len(set) > 4*maxAlternatives })
	for len(l.inner) > maxRequired {
		worst := 0
		for i, set := range l.inner {
			if worth(set) < worth(l.inner[worst]) {
				worst = i
			}
		}
		l.inner = slices.Delete(l.inner, worst, worst+1)
	}
	return l
}

// best returns the most selective set.
func best(sets [][]Literal) []Literal {
	var out []Literal
	for _, set := range sets {
		if out == nil || worth(set) > worth(out) {
			out = set
		}
	}
	return out
}

// worth ranks a set by its shortest member, then by the number of members.
func worth(set []Literal) int {
	shortest := maxSetBytes
	for _, l := range set {
		shortest = min(shortest, len(l.Text))
	}
	return min(shortest, 8)*1000 - len(set)
}

// shared returns the common beginnings and ends of the members of a set, which
// are faster to find than many members.
func shared(sets [][]Literal) (out [][]Literal) {
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
				out = append(out, []Literal{{Text: text, Fold: set[0].Fold, loose: true}})
			}
		}
	}
	return out
}
