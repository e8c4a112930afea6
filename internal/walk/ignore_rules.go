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
	noRule  verdict = iota
	ignored         // by a pattern
	kept            // by a pattern with !
)

// ruleSet holds the rules of one ignore file, indexed so that matching an entry
// takes a few map look-ups and no allocation. It is immutable.
type ruleSet struct {
	rules []rule
	fold  bool              // names are matched without case
	names names             // rules for the name alone
	byDir map[string]*names // anchored rules with literal directories, by directory
	paths []int32           // the other rules for paths, last first
}

// names finds the last rule that matches a name. Its lists hold indices of
// rules, last first.
type names struct {
	literal map[string][]int32
	ending  map[string][]int32 // by the text after the star, which starts with a dot
	globs   []int32
}

// parseRules parses an ignore file; it returns nil if the file has no rule, and
// TOO_LARGE if its braces expand too far.
func parseRules(content []byte, d dialect, fold bool) (*ruleSet, error) {
	s, room := &ruleSet{fold: fold}, maxExpanded
	text := string(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		for _, r := range parseLine(strings.TrimSuffix(line, "\r"), d, fold, &room) {
			s.add(r)
		}
		if room < 0 {
			return nil, toolerr.New(toolerr.TooLarge, "the alternatives in its braces take more than %d MiB", maxExpanded>>20)
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

func (s *ruleSet) add(r rule) {
	index := int32(len(s.rules))
	s.rules = append(s.rules, r)
	if r.nameOnly {
		s.names.add(s.rules, index)
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
	if r.last.shape == recursive {
		s.paths = append(s.paths, index)
		return
	}
	dir := strings.Join(parts, "/")
	if s.byDir == nil {
		s.byDir = make(map[string]*names)
	}
	if s.byDir[dir] == nil {
		s.byDir[dir] = new(names)
	}
	s.byDir[dir].add(s.rules, index)
}

// add indexes the rule at index, the last so far.
func (n *names) add(rules []rule, index int32) {
	switch g := &rules[index].last; {
	case g.shape == literal:
		if n.literal == nil {
			n.literal = make(map[string][]int32)
		}
		n.literal[g.text] = supersede(rules, n.literal[g.text], index)
	case g.shape == suffix && g.text[0] == '.':
		if n.ending == nil {
			n.ending = make(map[string][]int32)
		}
		n.ending[g.text] = supersede(rules, n.ending[g.text], index)
	default:
		n.globs = append(n.globs, index)
	}
}

// supersede puts index at the head of a list of rules with the same pattern,
// and drops those that it always overrides, so that a list has at most two.
func supersede(rules []rule, list []int32, index int32) []int32 {
	if !rules[index].dirOnly {
		return []int32{index}
	}
	list = slices.DeleteFunc(list, func(i int32) bool { return rules[i].dirOnly })
	return slices.Insert(list, 0, index)
}

func (n *names) finish() { slices.Reverse(n.globs) }

// match returns the index of the last rule that matches name, or best if that
// is greater.
func (n *names) match(rules []rule, name string, dir bool, best int32) int32 {
	if n.literal != nil {
		best = latest(rules, n.literal[name], dir, best)
	}
	if n.ending != nil {
		for i := 0; i < len(name); i++ {
			if name[i] == '.' {
				best = latest(rules, n.ending[name[i:]], dir, best)
			}
		}
	}
	for _, i := range n.globs {
		if i <= best {
			break
		}
		if r := &rules[i]; (dir || !r.dirOnly) && r.last.match(name) {
			return i
		}
	}
	return best
}

// latest returns the first rule of list that applies, or best if that is
// greater.
func latest(rules []rule, list []int32, dir bool, best int32) int32 {
	for _, i := range list {
		if i <= best {
			break
		}
		if dir || !rules[i].dirOnly {
			return i
		}
	}
	return best
}

// local is the part of a rule set for one directory: rules for paths that can
// match its entries.
type local struct {
	here  *names
	paths []int32
}

// localTo returns the rules for the entries of dir, a path relative to the
// set's own directory.
func (s *ruleSet) localTo(dir string) local {
	if len(s.byDir) == 0 && len(s.paths) == 0 {
		return local{}
	}
	if s.fold {
		dir = lowerName(dir)
	}
	l := local{here: s.byDir[dir]}
	for _, i := range s.paths {
		r := &s.rules[i]
		if matchDir(r.lead, dir, r.last.shape == recursive) {
			l.paths = append(l.paths, i)
		}
	}
	return l
}

// onPaths reports whether the set has rules that depend on the directory.
func (s *ruleSet) onPaths() bool { return len(s.byDir) > 0 || len(s.paths) > 0 }

// match returns the verdict on an entry of l's directory.
func (s *ruleSet) match(name string, dir bool, l *local) verdict {
	if s.fold {
		name = lowerName(name)
	}
	best := s.names.match(s.rules, name, dir, -1)
	if l.here != nil {
		best = l.here.match(s.rules, name, dir, best)
	}
	for _, i := range l.paths {
		if i <= best {
			break
		}
		if r := &s.rules[i]; (dir || !r.dirOnly) && r.last.match(name) {
			best = i
			break
		}
	}
	switch {
	case best < 0:
		return noRule
	case s.rules[best].negated:
		return kept
	}
	return ignored
}

// lowerName lowers ASCII letters only, as git does.
func lowerName(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return s
}
