package walk

import "strings"

// kind is a kind of ignore file, in the order of precedence.
type kind int

const (
	rgignore kind = iota
	dotIgnore
	gitignore
	exclude
	global
	kinds
)

// layer is a rule set and the place it speaks about.
type layer struct {
	set   *ruleSet
	above string // where the set's directory lies above the start: the path from it down to the start
	base  string // else: the path of the set's directory relative to the start
}

// rel returns dir, relative to the start, as seen from the set's directory.
func (l *layer) rel(dir string) string {
	switch {
	case l.above != "" && dir != "":
		return l.above + "/" + dir
	case l.above != "":
		return l.above
	case l.base != "":
		return strings.TrimPrefix(dir[len(l.base):], "/")
	}
	return dir
}

// scope is the ignore rules in force in a directory and below it, until an
// ignore file further down adds to them. It is immutable.
type scope struct {
	layers  [kinds][]layer // nearest first
	git     bool           // inside a repository or project, so that git's files count
	fold    bool           // core.ignorecase of that repository
	onPaths bool           // some rules depend on the directory
	base    *view          // the sets alone, for where none does
}

var (
	emptyView  = &view{}
	emptyScope = &scope{base: emptyView}
)

// with returns a copy that can be added to.
func (s *scope) with() *scope {
	c := *s
	return &c
}

// push adds a set that takes precedence over those of its kind.
func (s *scope) push(k kind, l layer) {
	if l.set != nil {
		s.layers[k] = append([]layer{l}, s.layers[k]...)
	}
}

// seal completes the scope after pushing.
func (s *scope) seal() *scope {
	s.base, s.onPaths = &view{}, false
	for k := range s.layers {
		for i := range s.layers[k] {
			l := &s.layers[k][i]
			s.base.sets = append(s.base.sets, active{set: l.set})
			s.onPaths = s.onPaths || l.set.onPaths()
		}
	}
	return s
}

// view is a scope prepared for the entries of one directory: the sets in
// order of precedence, the first with a verdict decides.
type view struct{ sets []active }

type active struct {
	set   *ruleSet
	local local
}

// view prepares the scope for the directory at path. Where no rule depends on
// it, all directories share one.
func (s *scope) view(path string) *view {
	if !s.onPaths {
		return s.base
	}
	var v *view
	n := 0
	for k := range s.layers {
		for i := range s.layers[k] {
			l := &s.layers[k][i]
			if l.set.onPaths() {
				if local := l.set.localTo(l.rel(path)); local.here != nil || local.paths != nil {
					if v == nil {
						v = &view{sets: append([]active(nil), s.base.sets...)}
					}
					v.sets[n].local = local
				}
			}
			n++
		}
	}
	if v == nil {
		return s.base
	}
	return v
}

func (v *view) match(name string, dir bool) verdict {
	for i := range v.sets {
		a := &v.sets[i]
		if verdict := a.set.match(name, dir, &a.local); verdict != noRule {
			return verdict
		}
	}
	return noRule
}
