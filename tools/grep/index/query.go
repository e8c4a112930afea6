package index

import (
	"cmp"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// Limits of the probes for each filter: more grams of a literal add no
// information, and a set of more literals nearly always matches.
const (
	maxLiteralBytes = 64      // bytes of a literal that are used
	maxProbes       = 16      // of a literal, the rarest ones
	maxLiterals     = 1024    // of a set
	maxSample       = 64      // filters that are sampled for rarity
	maxTrials       = 1 << 16 // probes of the sample
)

// Query holds the literals that a pattern requires. Make a new one for each
// search, and use it with one index. It is safe for concurrent use.
type Query struct {
	sets   [][]literal // a text that matches contains one literal of each set
	once   sync.Once   // begins the search
	search uint32      // its number in the index
}

// literal holds the probes of a literal's grams. A text that contains the
// literal has all of them.
type literal []probe

// NewQuery returns a query for the result of search.Matcher.RequiredLiterals.
// It returns nil if that has nothing that the index can use.
func NewQuery(required [][]search.Literal) *Query {
	q := &Query{}
	for _, alternatives := range required {
		if len(alternatives) > maxLiterals {
			continue
		}
		var set []literal
		for _, alternative := range alternatives {
			l := newLiteral(alternative)
			if len(l) == 0 { // matches any filter, so the set always does
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

// newLiteral returns the probes of a literal; none if it is too short.
func newLiteral(l search.Literal) literal {
	text := l.Text
	if len(text) > maxLiteralBytes {
		text = text[:maxLiteralBytes]
	}
	if l.Fold {
		text = unfold(nil, wholeRunes(text))
	}
	var probes literal
	last := uint32(0)
	for i, c := range text {
		last = last<<8 | uint32(lowerASCII(c))
		if i >= 2 {
			probes = append(probes, probeOf(threeCode(last)))
		}
		if i >= 3 {
			probes = append(probes, probeOf(fourCode(last)))
		}
	}
	return probes
}

// wholeRunes cuts incomplete characters off both ends: they might belong to a
// character that unfold replaces in the file's text.
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

// beginOnce returns the number of the query's search in x. The first call
// begins the search.
func (q *Query) beginOnce(x *Index) uint32 {
	q.once.Do(func() {
		q.search = x.beginSearch()
		probes := 0
		for _, set := range q.sets {
			for _, l := range set {
				probes += len(l)
			}
		}
		q.sortBySample(x.sampleFilters(min(maxSample, maxTrials/probes)))
	})
	return q.search
}

// counted is a set, literal or probe, with the number of sampled filters that
// may contain it.
type counted[T any] struct {
	of    T
	found int // number of filters
}

// leastFirst returns the elements of a list, sorted by their number.
func leastFirst[T any](list []counted[T]) []T {
	slices.SortStableFunc(list, func(a, b counted[T]) int { return cmp.Compare(a.found, b.found) })
	sorted := make([]T, len(list))
	for i, c := range list {
		sorted[i] = c.of
	}
	return sorted
}

// sortBySample sorts the query's sets so that most texts are excluded by few
// probes: the set that is rarest in a sample of filters first, in a set the
// most frequent literal first, in a literal the rarest gram first.
func (q *Query) sortBySample(sample []filter) {
	var sets []counted[[]literal]
	for _, set := range q.sets {
		var literals []counted[literal]
		sum := 0
		for _, l := range set {
			rarest, found := l.rarestProbes(sample)
			literals = append(literals, counted[literal]{rarest, -found})
			sum += found
		}
		sets = append(sets, counted[[]literal]{leastFirst(literals), sum})
	}
	q.sets = leastFirst(sets)
}

// rarestProbes returns the probes of l that are rarest in a sample of filters,
// at most maxProbes, and the number of filters that have the rarest.
func (l literal) rarestProbes(sample []filter) (rarest literal, found int) {
	var probes []counted[probe]
	for _, p := range l {
		n := 0
		for _, f := range sample {
			if f.mayHave(p) {
				n++
			}
		}
		probes = append(probes, counted[probe]{p, n})
	}
	rarest = leastFirst(probes)
	return rarest[:min(len(rarest), maxProbes)], probes[0].found
}

// mayBeIn reports whether a text with this filter may have the required
// literals.
func (q *Query) mayBeIn(f filter) bool {
	if len(f) == 0 {
		return false
	}
	for _, set := range q.sets {
		if !f.mayHaveOneOf(set) {
			return false
		}
	}
	return true
}

// commonProbe returns a probe that every match requires. It returns false if
// there is none.
func (q *Query) commonProbe() (probe, bool) {
	if q == nil || len(q.sets[0]) > 1 {
		return probe{}, false
	}
	return q.sets[0][0][0], true
}

// mayHaveOneOf reports whether a text with this filter may have a literal of
// the set.
func (f filter) mayHaveOneOf(set []literal) bool {
next:
	for _, l := range set {
		for _, p := range l {
			if !f.mayHave(p) {
				continue next
			}
		}
		return true
	}
	return false
}
