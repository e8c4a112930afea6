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
	maxLiteral  = 64 // bytes of a literal that are used
	maxProbes   = 16 // of a literal, the rarest ones
	maxLiterals = 1024
	maxSample   = 64      // filters that are sampled for rarity
	maxTrials   = 1 << 16 // limit of probes in the sample
)

// Query holds the literals that a pattern requires. Make one for each search,
// and use it with one index; it is safe for concurrent use.
type Query struct {
	sets   [][]literal // one literal of each set is required
	once   sync.Once
	search uint32
}

// literal holds the probes of a literal's grams; a text must have all of them.
type literal []probe

// NewQuery takes the result of search.Matcher.Required. It returns nil if that
// has nothing the index can use.
func NewQuery(required [][]search.Literal) *Query {
	q := &Query{}
	for _, alternatives := range required {
		if len(alternatives) > maxLiterals {
			continue
		}
		var set []literal
		for _, alternative := range alternatives {
			l := literalOf(alternative)
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

// literalOf returns the probes of a literal; none if it is too short.
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

// wholeRunes cuts incomplete characters from both ends: they might belong to a
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

// begin returns the number of the search; the first call begins it.
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

// counted is an alternative with the number of filters that contain it.
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

// order sorts by the usefulness in a sample of filters: the rarest set first,
// in a set the most frequent literal, in a literal the rarest gram.
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

// order returns the rarest probes of l, and the number of filters with the
// rarest.
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

// mayBeIn reports whether a text with this filter may have the required
// literals.
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

// first returns a probe that every match requires, if there is one.
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
