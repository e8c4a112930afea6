package walk

import (
	"strings"
	"unicode"
)

// dialect selects git's or ripgrep's reading of a pattern where they differ.
type dialect uint8

const (
	// gitDialect is for .gitignore, info/exclude and core.excludesFile.
	gitDialect dialect = iota
	rgDialect          // .ignore and .rgignore
)

// rule is one line of an ignore file.
type rule struct {
	negated  bool
	dirOnly  bool
	nameOnly bool   // lead is empty and the rule applies at any depth
	lead     []glob // the elements before the last
	last     glob   // shape anyDirs: everything below lead
}

// maxAlternatives bounds the alternatives of a line with braces.
// maxExpandedBytes bounds those of a file, in bytes, with expansionCost added
// for each intermediate one. maxLine is the longest line that counts as a
// pattern: no path that a longer one could match exists.
const (
	maxAlternatives  = 256
	maxExpandedBytes = 4 << 20
	expansionCost    = 64
	maxLine          = 4096
)

// parseLine returns the rules of a line without its line end. It returns none for
// comments, blank lines and patterns that can match nothing, and several only for
// alternatives in braces. It subtracts the size of alternatives from budget, which
// becomes negative if they exceed it. fold means that names are matched regardless of
// case.
func parseLine(line string, d dialect, fold bool, budget *int) []rule {
	if strings.HasPrefix(line, "#") || len(line) > maxLine {
		return nil
	}
	line = trimLine(line, d)
	var r rule
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.negated, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
		if d == rgDialect {
			line = strings.TrimSuffix(line, `\`) // ripgrep reads an escaped slash as a slash
		}
	}
	if line == "" {
		if d == rgDialect && r.negated && !r.dirOnly {
			r.nameOnly, r.last = true, glob{shape: anyName} // in ripgrep, "!" keeps everything
			return []rule{r}
		}
		return nil
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	lines := []string{line}
	if d == rgDialect {
		lines = expandBraces(line, budget)
	}
	var rules []rule
	for _, text := range lines {
		elements, ok := parsePattern(text, d, fold)
		if ok {
			rules = append(rules, r.withElements(elements, anchored))
		}
	}
	return rules
}

// withElements returns a copy of r for the path elements of its pattern. anchored means
// that the pattern has a slash before its end, so that it matches paths, not only names.
func (r rule) withElements(elements []glob, anchored bool) rule {
	end := len(elements) - 1
	r.lead, r.last = elements[:end], elements[end]
	switch {
	case !anchored:
		r.nameOnly = true
	case len(r.lead) == 1 && r.lead[0].shape == anyDirs, // **/name
		len(r.lead) == 0 && r.last.shape == anyDirs: // /**
		r.lead, r.nameOnly = nil, true
	}
	return r
}

// trimLine returns a line without trailing white space that the dialect
// ignores.
func trimLine(line string, d dialect) string {
	if d == rgDialect {
		if strings.HasSuffix(line, `\ `) {
			return line
		}
		return strings.TrimRightFunc(line, unicode.IsSpace)
	}
	end := len(line)
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			end = min(end, i)
		case '\\':
			i++
			end = len(line)
		default:
			end = len(line)
		}
	}
	return line[:end]
}

// parsePattern returns the path elements of a pattern. ok is false for a
// pattern that can match nothing: one with an invalid class, a backslash at the
// end, or two slashes in a row. If fold is set, names are matched in lower
// case.
func parsePattern(p string, d dialect, fold bool) (elements []glob, ok bool) {
	var list []token
	stars := 0 // in a row, from the start of the element
	empty, unclosed := false, 0
	finish := func() {
		empty = empty || len(list) == 0
		double := stars == 2 || stars > 2 && d == gitDialect
		if double && len(list) == 1 {
			if n := len(elements); n == 0 || elements[n-1].shape != anyDirs {
				elements = append(elements, glob{shape: anyDirs})
			}
		} else {
			elements = append(elements, newGlob(list))
		}
		list, stars = nil, 0
	}
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '/':
			finish()
		case '*':
			if len(list) == 0 || len(list) == 1 && stars > 0 {
				stars++
			}
			if len(list) == 0 || !list[len(list)-1].star {
				list = append(list, token{star: true})
			}
		case '?':
			all := new(byteSet)
			all.invert()
			list = append(list, token{set: all})
		case '[':
			set, size := d.parseClass(p[i:], fold)
			if size == 1 {
				unclosed++
			}
			if set == nil || unclosed > maxUnclosed {
				return nil, false
			}
			list = append(list, token{set: set})
			i += size - 1
		case '\\':
			i++
			if i == len(p) {
				return nil, false
			}
			if p[i] == '/' {
				finish()
				continue
			}
			list = append(list, byteToken(p[i], false)) // as in git, which does not fold it
		default:
			list = append(list, byteToken(c, fold))
		}
	}
	finish()
	return elements, !empty
}

// maxUnclosed bounds the unclosed brackets of a pattern, since finding each
// means reading to the pattern's end. A pattern with more matches nothing.
const maxUnclosed = 4

// parseClass parses the bracket expression at the start of p. It returns the
// bytes that it matches, and its length; nil if it is invalid.
func (d dialect) parseClass(p string, fold bool) (set *byteSet, size int) {
	if d == rgDialect {
		return parseRipgrepClass(p)
	}
	return parseGitClass(p, fold)
}

// byteToken returns a token that matches the byte c, in lower case if fold is set.
func byteToken(c byte, fold bool) token {
	if fold {
		c = lowerASCII(c)
	}
	return token{c: c}
}

// lowerASCII returns the lower case of an ASCII letter, and any other byte unchanged.
func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
