package search

import "bytes"

// finder finds where one of some literals stands.
type finder struct {
	set  []Literal
	cost float64
}

func newFinder(set []Literal) *finder {
	for _, l := range set {
		if l.Fold {
			return nil
		}
	}
	return &finder{set: set, cost: float64(len(set))}
}

func (f *finder) find(text []byte, from int) int {
	best := -1
	for _, l := range f.set {
		end := len(text)
		if best >= 0 {
			end = min(end, best+len(l.Text))
		}
		if i := bytes.Index(text[from:end], l.Text); i >= 0 {
			best = from + i
		}
	}
	return best
}
