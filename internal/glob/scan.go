package glob

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// reading is what a look over a pattern tells.
type reading struct {
	// plain is the pattern with its classes, and with braces that hold no
	// comma, read as plain characters.
	plain  string
	reason string // what is wrong with it as a glob; "" if nothing is
	where  string // the pattern from the fault on
	parted bool   // a class holds a slash: as in bash, it is none, and only plain counts
}

// fault returns the BAD_PATTERN error, nil if the pattern is valid. pattern
// is what the caller gave, of which the scanned text is a cleaned form.
func (r reading) fault(pattern string) error {
	if r.reason == "" {
		return nil
	}
	given := Slashes(pattern)
	at := strings.LastIndex(given, r.where)
	if at < 0 {
		at = len(given) - 1
	}
	pos := position(given, at)
	return toolerr.New(toolerr.BadPattern, "invalid pattern %q at character %d: %s", pattern, pos, r.reason).With("position", pos)
}

// scan reads a pattern once. It agrees with doublestar.ValidatePattern on
// what is valid, apart from classes, which are read as bash reads them.
func scan(text string) reading {
	s := scanner{text: text, braces: pairs(text)}
	for s.at < len(text) {
		s.step()
	}
	return reading{plain: s.plain.String(), reason: s.reason, where: s.where, parted: s.parted}
}

type scanner struct {
	text   string
	at     int
	plain  strings.Builder
	braces map[int]brace
	reason string
	where  string
	parted bool
}

func (s *scanner) breaks(at int, reason string) {
	if s.reason == "" {
		s.reason, s.where = reason, s.text[at:]
	}
}

func (s *scanner) escaped(text string) { s.plain.WriteString(Literal(text)) }

func (s *scanner) step() {
	start := s.at
	switch c := s.text[start]; c {
	case '\\':
		if start+1 == len(s.text) {
			s.breaks(start, `trailing backslash (write \\ for a literal one)`)
			s.escaped(`\`)
			s.at++
			return
		}
		s.plain.WriteString(s.text[start : start+2])
		s.at += 2
	case '[':
		end, reason := classEnd(s.text, start)
		if reason != "" {
			s.breaks(start, reason)
		}
		s.parted = s.parted || strings.Contains(s.text[start:end], "/")
		s.escaped(s.text[start:end])
		s.at = end
	case '{', '}':
		b, paired := s.braces[start]
		switch {
		case !paired && c == '{':
			s.breaks(start, `unclosed "{" (write \{ for a literal brace)`)
		case !paired:
			s.breaks(start, `unmatched "}" (write \} for a literal brace)`)
		}
		if paired && b.comma {
			s.plain.WriteByte(c)
		} else {
			s.escaped(string(c))
		}
		s.at++
	default:
		s.plain.WriteByte(c)
		s.at++
	}
}

// classEnd returns the index after the class that begins at start, and what
// is wrong with it.
func classEnd(text string, start int) (end int, reason string) {
	_, end, reason = readClass(text, start, false)
	return end, reason
}

// brace is one brace of a pair.
type brace struct {
	comma bool // there are alternatives between them
}

// pairs finds which braces belong together.
func pairs(text string) map[int]brace {
	found := map[int]brace{}
	type open struct {
		at    int
		comma bool
	}
	var stack []open
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if end, reason := classEnd(text, i); reason == "" {
				i = end - 1
			}
		case '{':
			stack = append(stack, open{at: i})
		case ',':
			if len(stack) > 0 {
				stack[len(stack)-1].comma = true
			}
		case '}':
			if len(stack) > 0 {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				found[top.at], found[i] = brace{top.comma}, brace{top.comma}
			}
		}
	}
	return found
}

// expand writes out the alternatives of a valid pattern; false when they are
// more than limit.
func expand(text string, limit int) ([]string, bool) {
	open, cuts, end := firstBraces(text)
	if open < 0 {
		return []string{text}, limit >= 1
	}
	var all []string
	from := open + 1
	for _, cut := range append(cuts, end) {
		more, ok := expand(text[:open]+text[from:cut]+text[end+1:], limit-len(all))
		if !ok {
			return nil, false
		}
		all = append(all, more...)
		from = cut + 1
	}
	return all, true
}

// firstBraces finds the first pair of braces and the commas that part its
// alternatives; open is -1 if there is none.
func firstBraces(text string) (open int, commas []int, end int) {
	open = -1
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if end, reason := classEnd(text, i); reason == "" {
				i = end - 1
			}
		case '{':
			if depth == 0 {
				open = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return open, commas, i
			}
		}
	}
	return -1, nil, 0
}
