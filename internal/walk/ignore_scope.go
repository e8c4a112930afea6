package walk

import "strings"

// fileKind is a kind of ignore file. A smaller kind takes precedence.
type fileKind int

const (
	// rgignore is a .rgignore file, dotIgnore an .ignore file, gitignore a
	// .gitignore file, exclude .git/info/exclude, global the user's file
	// core.excludesFile. kindCount is the number of kinds.
	rgignore fileKind = iota
	dotIgnore
	gitignore
	exclude
	global
	kindCount
)

// layer is a rule set with the position of its directory.
type layer struct {
	set   *ruleSet
	above string // for a directory above the start: the path from it to the start
	base  string // otherwise: the directory's path relative to the start
}

// rel converts dir, relative to the start, to a path relative to the set's
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
	layers       [kindCount][]layer // nearest first
	inRepository bool               // inside a repository or project, so that git's files apply
	fold         bool               // core.ignorecase of that repository
	hasPathRules bool               // some rules depend on the directory
	base         *dirMatcher        // the matcher for directories on which no rule depends
}

var (
	// emptyMatcher and emptyScope have no rules: every entry is visited.
	emptyMatcher = &dirMatcher{}
	emptyScope   = &scope{base: emptyMatcher}
)

// clone returns a copy to which layers can be added.
func (s *scope) clone() *scope {
	c := *s
	return &c
}

// addLayer adds a set that takes precedence over the others of its kind. A
// layer without a set is ignored.
func (s *scope) addLayer(k fileKind, l layer) {
	if l.set != nil {
		s.layers[k] = append([]layer{l}, s.layers[k]...)
	}
}

// finish completes the scope after the last addLayer, and returns it.
func (s *scope) finish() *scope {
	s.base, s.hasPathRules = &dirMatcher{}, false
	for k := range s.layers {
		for i := range s.layers[k] {
			l := &s.layers[k][i]
			s.base.sets = append(s.base.sets, activeSet{set: l.set})
			s.hasPathRules = s.hasPathRules || l.set.hasPathRules()
		}
	}
	return s
}

// dirMatcher is a scope prepared for the entries of one directory: its sets in
// order of precedence. The first set with a verdict decides.
type dirMatcher struct{ sets []activeSet }

// activeSet is a rule set with its rules for the directory.
type activeSet struct {
	set   *ruleSet
	local dirRules
}

// matcherFor returns the matcher for the directory at path, relative to the
// start. All directories on which no rule depends share a matcher.
func (s *scope) matcherFor(path string) *dirMatcher {
	if !s.hasPathRules {
		return s.base
	}
	var v *dirMatcher
	n := 0
	for k := range s.layers {
		for i := range s.layers[k] {
			l := &s.layers[k][i]
			if l.set.hasPathRules() {
				if local := l.set.rulesFor(l.rel(path)); local.anchored != nil || local.paths != nil {
					if v == nil {
						v = &dirMatcher{sets: append([]activeSet(nil), s.base.sets...)}
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

// verdictOn returns the verdict on the entry name of the directory.
func (v *dirMatcher) verdictOn(name string, isDir bool) verdict {
	for i := range v.sets {
		a := &v.sets[i]
		if verdict := a.set.verdictOn(name, isDir, &a.local); verdict != noRule {
			return verdict
		}
	}
	return noRule
}
