package index

import (
	"cmp"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// Bounds of what a query asks of each filter: more grams of a literal add
// nothing, and a set of more literals is nearly always met.
const (
	maxLiteral  = 64 // bytes of a literal that are looked at
	maxProbes   = 16 // of a literal, the rarest ones
	maxLiterals = 1024
	maxSample   = 64      // filters that tell what is rare,
	maxTrials   = 1 << 16 // by so many probes
)

// Query is what a pattern requires, made once a search. It is used with one
// index, by any number of goroutines.
type Query struct {
	sets   [][]literal // one literal of each set is required
	once   sync.Once
	search uint32
}

// literal is the probes of its grams, all of which are required.
type literal []probe

// NewQuery takes what search.Matcher.Required returns. A query that requires
// nothing usable is nil.
func NewQuery(required [][]search.Literal) *Query {
	q := &Query{}
	for _, alternatives := range required {
		if len(alternatives) > maxLiterals {
			continue
		}
		var set []literal
		for _, alternative := range alternatives {
			l := literalOf(alternative)
			if len(l) == 0 { // may be anywhere, so the set is always met
				set = nil
				break
			}
			set = append(set, l)
		}
		if len(set) > 0 {
			q.sets = append(q.sets, set)
		}
	}
	if len(q.sets) == 0 {
		return nil
	}
	return q
}

// literalOf returns no probes for what is too short.
func literalOf(l search.Literal) literal {
	text := l.Text
	if len(text) > maxLiteral {
		text = text[:maxLiteral]
	}
	if l.Fold {
		text = unfold(nil, wholeRunes(text))
	}
	var probes literal
	last := uint32(0)
	for i, c := range text {
		last = last<<8 | uint32(lower(c))
		if i >= 2 {
			probes = append(probes, probeOf(threeCode(last)))
		}
		if i >= 3 {
			probes = append(probes, probeOf(fourCode(last)))
		}
	}
	return probes
}

// wholeRunes cuts parts of runes from both ends: they might be parts of a
// sign that is a letter in the other reading of the text.
func wholeRunes(text []byte) []byte {
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				text = text[:i]
			}
			break
		}
	}
	return text
}

// begin returns the count of the search, which begins with the first call.
func (q *Query) begin(x *Index) uint32 {
	q.once.Do(func() {
		q.search = x.begin()
		probes := 0
		for _, set := range q.sets {
			for _, l := range set {
				probes += len(l)
			}
		}
		q.order(x.sample(min(maxSample, maxTrials/probes)))
	})
	return q.search
}

// counted is one of several alternatives, and in how many filters it is.
type counted[T any] struct {
	of    T
	found int
}

func leastFirst[T any](list []counted[T]) []T {
	slices.SortStableFunc(list, func(a, b counted[T]) int { return cmp.Compare(a.found, b.found) })
	sorted := make([]T, len(list))
	for i, c := range list {
		sorted[i] = c.of
	}
	return sorted
}

// order puts first what decides soonest, judging by some filters: the rarest
// set, in a set the most frequent literal, in a literal the rarest gram.
func (q *Query) order(sample []filter) {
	var sets []counted[[]literal]
	for _, set := range q.sets {
		var literals []counted[literal]
		sum := 0
		for _, l := range set {
			rarest, found := l.order(sample)
			literals = append(literals, counted[literal]{rarest, -found})
			sum += found
		}
		sets = append(sets, counted[[]literal]{leastFirst(literals), sum})
	}
	q.sets = leastFirst(sets)
}

// order returns the rarest probes of l, and in how many filters the rarest is.
func (l literal) order(sample []filter) (rarest literal, found int) {
	var probes []counted[probe]
	for _, p := range l {
		n := 0
		for _, f := range sample {
			if f.has(p) {
				n++
			}
		}
		probes = append(probes, counted[probe]{p, n})
	}
	rarest = leastFirst(probes)
	return rarest[:min(len(rarest), maxProbes)], probes[0].found
}

// mayBeIn reports whether a text with this filter may hold what is required.
func (q *Query) mayBeIn(f filter) bool {
	if len(f) == 0 {
		return false
	}
	for _, set := range q.sets {
		if !f.hasOneOf(set) {
			return false
		}
	}
	return true
}

// first returns a probe that is required whatever else is, if there is one.
func (q *Query) first() (probe, bool) {
	if q == nil || len(q.sets[0]) > 1 {
		return probe{}, false
	}
	return q.sets[0][0][0], true
}

func (f filter) hasOneOf(set []literal) bool {
next:
	for _, l := range set {
		for _, p := range l {
			if !f.has(p) {
				continue next
			}
		}
		return true
	}
	return false
}
