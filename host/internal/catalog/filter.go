package catalog

import (
	"slices"
	"strings"
)

// A Filter selects and renames a server's tools. Patterns match the server's own names
// or the served ones; * matches any characters.
type Filter struct {
	Allow    []string          // empty: all
	Block    []string          // takes precedence over Allow
	Rename   map[string]string // the server's own name → the served name
	Describe map[string]string // the server's own name → the served description
}

// serves reports whether the filter lets an item through, by its served names or its
// original one.
func (f Filter) serves(item *Item) bool {
	return permitsNames(f.Allow, f.Block, append(item.names(), item.Original), nil)
}

// permitsNames reports whether an item with several names is permitted: one name is
// allowed, or all are, and neither a name nor a tool that it leads to is blocked.
func permitsNames(allow, block, names, also []string) bool {
	named := func(patterns, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return MatchesAny(patterns, name) })
	}
	return (len(allow) == 0 || named(allow, names)) && !named(block, names) && !named(block, also)
}

// MatchesAny reports whether a name matches any of the patterns.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches reports whether a name matches a pattern with *.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(name, first) || !strings.HasSuffix(name[len(first):], last) {
		return false
	}
	rest := name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return true
}

// lookAlikeKey returns a form of a name that is equal for names that look alike in some
// fonts.
func lookAlikeKey(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '0':
			return 'o'
		case '1', 'i', 'I':
			return 'l'
		case '5':
			return 's'
		case '-':
			return '_'
		}
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}
