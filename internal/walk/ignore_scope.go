package walk

import "strings"

// kind is a kind of ignore file, in order of precedence.
type kind int

const (
	rgignore kind = iota
	dotIgnore
	gitignore
	exclude
	global
	kinds
)

// layer is a rule set and its directory.
type layer struct {
	set   *ruleSet
	above string // for a directory above the start: the path from it to the start
	base  string // otherwise: the directory's path relative to the start
}

// rel converts dir from relative to the start to relative to the set's
// directory.
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

// scope holds the ignore rules of a directory and those below it, until a
// further ignore file adds to them. It is immutable.
type scope struct {
	layers  [kinds][]layer // nearest first
	git     bool           // inside a repository or project, so that git's files apply
	fold    bool           // core.ignorecase of that repository
	onPaths bool           // some rules depend on the directory
	base    *view          // the view for directories on which no rule depends
}

var (
	emptyView  = &view{}
	emptyScope = &scope{base: emptyView}
)

// with returns a copy to add rules to.
func (s *scope) with() *scope {
	c := *s
	return &c
}

// push adds a set that takes precedence over the others of its kind.
func (s *scope) push(k kind, l layer) {
	if l.set != nil {
		s.layers[k] = append([]layer{l}, s.layers[k]...)
	}
}

// seal completes the scope after the last push.
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

// view is a scope prepared for the entries of one directory: the sets in order
// of precedence. The first set with a verdict decides.
type view struct{ sets []active }

type active struct {
	set   *ruleSet
	local local
}

// view returns the view for the directory at path. All directories on which no
// rule depends share one.
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
