package catalog

import (
	"slices"
	"strings"
)

// A Filter says which of a server's tools are served, and how. Patterns are
// of the server's own names, or of the served ones; a * stands for any number
// of characters.
type Filter struct {
	Allow    []string          // none: all
	Block    []string          // wins over Allow
	Rename   map[string]string // the server's name → the one served
	Describe map[string]string // the server's name → the description served
}

func (f Filter) serves(item *Item) bool {
	return permits(f.Allow, f.Block, append(item.names(), item.Original), nil)
}

// permits reports whether something with several names may be had: one of them
// is allowed, or all are, and none is blocked, nor one of what it leads to.
func permits(allow, block, names, also []string) bool {
	named := func(patterns, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return MatchesAny(patterns, name) })
	}
	return (len(allow) == 0 || named(allow, names)) && !named(block, names) && !named(block, also)
}

// MatchesAny reports whether a name is of the form of any of the patterns.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches reports whether a name is of the form of a pattern with *.
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

// skeleton is what is left of a name for somebody who reads it carelessly, or
// in a bad typeface: two names with the same one look alike.
func skeleton(name string) string {
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
