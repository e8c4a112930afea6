package walk

import (
	"bytes"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// verdict is the decision of ignore rules about an entry.
type verdict uint8

const (
	// noRule means that no rule matches the entry.
	noRule     verdict = iota
	ignored            // by a pattern
	reincluded         // by a pattern with !
)

// ruleSet holds the rules of one ignore file, indexed so that matching an entry
// takes a few map look-ups and no allocation. It is immutable.
type ruleSet struct {
	rules []rule
	fold  bool                  // names are matched in lower case
	names nameRules             // rules for the name alone
	byDir map[string]*nameRules // anchored rules with literal directories, by directory
	paths []int32               // the other rules for paths, last first
}

// nameRules finds the last rule that matches a name. Its lists hold indices of
// rules, last first.
type nameRules struct {
	byName   map[string][]int32 // by the whole name
	bySuffix map[string][]int32 // by the text after the star, which starts with a dot
	globs    []int32            // all other rules
}

// parseRules parses an ignore file. It returns nil if the file has no rule, and TOO_LARGE
// if its braces expand too far. fold means that names are matched regardless of case.
func parseRules(content []byte, d dialect, fold bool) (*ruleSet, error) {
	s, budget := &ruleSet{fold: fold}, maxExpandedBytes
	text := string(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		for _, r := range parseLine(strings.TrimSuffix(line, "\r"), d, fold, &budget) {
			s.add(r)
		}
		if budget < 0 {
			return nil, toolerr.New(toolerr.TooLarge, "the alternatives in its braces take more than %d MiB", maxExpandedBytes>>20)
		}
	}
	if len(s.rules) == 0 {
		return nil, nil
	}
	s.names.finish()
	for _, n := range s.byDir {
		n.finish()
	}
	slices.Reverse(s.paths)
	return s, nil
}

// add adds a rule, which comes after those already added.
func (s *ruleSet) add(r rule) {
	index := int32(len(s.rules))
	s.rules = append(s.rules, r)
	if r.nameOnly {
		s.names.addRule(s.rules, index)
		return
	}
	parts := make([]string, len(r.lead))
	for i, g := range r.lead {
		if g.shape != literal {
			s.paths = append(s.paths, index)
			return
		}
		parts[i] = g.text
	}
	if r.last.shape == anyDirs {
		s.paths = append(s.paths, index)
		return
	}
	dir := strings.Join(parts, "/")
	if s.byDir == nil {
		s.byDir = make(map[string]*nameRules)
	}
	if s.byDir[dir] == nil {
		s.byDir[dir] = new(nameRules)
	}
	s.byDir[dir].addRule(s.rules, index)
}

// addRule indexes the rule rules[index], which comes after those already indexed.
func (n *nameRules) addRule(rules []rule, index int32) {
	switch g := &rules[index].last; {
	case g.shape == literal:
		if n.byName == nil {
			n.byName = make(map[string][]int32)
		}
		n.byName[g.text] = supersede(rules, n.byName[g.text], index)
	case g.shape == suffix && g.text[0] == '.':
		if n.bySuffix == nil {
			n.bySuffix = make(map[string][]int32)
		}
		n.bySuffix[g.text] = supersede(rules, n.bySuffix[g.text], index)
	default:
		n.globs = append(n.globs, index)
	}
}

// supersede puts index at the head of a list of rules with the same pattern,
// and drops the rules that it always overrides, so that a list has at most two.
func supersede(rules []rule, list []int32, index int32) []int32 {
	if !rules[index].dirOnly {
		return []int32{index}
	}
	list = slices.DeleteFunc(list, func(i int32) bool { return rules[i].dirOnly })
	return slices.Insert(list, 0, index)
}

// finish puts the globs in order, last rule first, after the last add.
func (n *nameRules) finish() { slices.Reverse(n.globs) }

// lastMatch returns the index of the last rule that matches a name, or best if that is
// greater. isDir says that it is the name of a directory.
func (n *nameRules) lastMatch(rules []rule, name string, isDir bool, best int32) int32 {
	if n.byName != nil {
		best = lastOf(rules, n.byName[name], isDir, best)
	}
	if n.bySuffix != nil {
		for i := 0; i < len(name); i++ {
			if name[i] == '.' {
				best = lastOf(rules, n.bySuffix[name[i:]], isDir, best)
			}
		}
	}
	for _, i := range n.globs {
		if i <= best {
			break
		}
		if r := &rules[i]; (isDir || !r.dirOnly) && r.last.match(name) {
			return i
		}
	}
	return best
}

// lastOf returns the first index in list of a rule that applies, or best if that is
// greater. isDir says that the entry is a directory: only then rules for directories
// apply.
func lastOf(rules []rule, list []int32, isDir bool, best int32) int32 {
	for _, i := range list {
		if i <= best {
			break
		}
		if isDir || !rules[i].dirOnly {
			return i
		}
	}
	return best
}

// dirRules are those rules of a set for paths that can match the entries of one
// directory.
type dirRules struct {
	anchored *nameRules // rules anchored at this directory; nil: none
	paths    []int32    // other rules, last first
}

// rulesFor returns the rules for the entries of dir, a path relative to the
// set's own directory.
func (s *ruleSet) rulesFor(dir string) dirRules {
	if len(s.byDir) == 0 && len(s.paths) == 0 {
		return dirRules{}
	}
	if s.fold {
		dir = lowerName(dir)
	}
	l := dirRules{anchored: s.byDir[dir]}
	for _, i := range s.paths {
		r := &s.rules[i]
		if matchDir(r.lead, dir, r.last.shape == anyDirs) {
			l.paths = append(l.paths, i)
		}
	}
	return l
}

// hasPathRules reports whether the set has rules that depend on the directory.
func (s *ruleSet) hasPathRules() bool { return len(s.byDir) > 0 || len(s.paths) > 0 }

// verdictOn returns the verdict on the entry name of the directory to which l
// belongs.
func (s *ruleSet) verdictOn(name string, isDir bool, l *dirRules) verdict {
	if s.fold {
		name = lowerName(name)
	}
	best := s.names.lastMatch(s.rules, name, isDir, -1)
	if l.anchored != nil {
		best = l.anchored.lastMatch(s.rules, name, isDir, best)
	}
	for _, i := range l.paths {
		if i <= best {
			break
		}
		if r := &s.rules[i]; (isDir || !r.dirOnly) && r.last.match(name) {
			best = i
			break
		}
	}
	switch {
	case best < 0:
		return noRule
	case s.rules[best].negated:
		return reincluded
	}
	return ignored
}

// lowerName returns s with ASCII letters in lower case. Like git it leaves
// other letters unchanged.
func lowerName(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lowerASCII(b[i])
			}
			return string(b)
		}
	}
	return s
}
