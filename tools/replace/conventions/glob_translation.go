package conventions

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// globTranslator converts a glob to a regular expression. The syntaxes differ:
// in .editorconfig, ** matches any text, and braces are alternatives or a range
// of numbers; in git, braces are literal and ** matches directories.
type globTranslator struct {
	glob         string
	editorSyntax bool // the syntax of .editorconfig instead of git's

	next         int             // index in glob of the next byte to translate
	out          strings.Builder // the regular expression
	numberRanges [][2]int        // inclusive, for each group that matches a number
}

// translate translates up to the end of the glob or of the enclosing braces.
// depth is the number of enclosing braces.
func (t *globTranslator) translate(depth int) {
	for t.next < len(t.glob) {
		c := t.glob[t.next]
		t.next++
		switch {
		case c == '\\' && t.next < len(t.glob):
			t.writeLiteral(t.glob[t.next : t.next+1])
			t.next++
		case c == '*':
			t.translateStar()
		case c == '?':
			t.out.WriteString("[^/]")
		case c == '[':
			t.translateClass()
		case c == '{' && t.editorSyntax:
			t.translateBraces(depth)
		case c == ',' && depth > 0:
			t.out.WriteString("|")
		case c == '}' && depth > 0:
			return
		default:
			t.writeLiteral(t.glob[t.next-1 : t.next])
		}
	}
}

// writeLiteral writes a byte that matches itself.
func (t *globTranslator) writeLiteral(s string) {
	if s[0] >= 0x80 {
		t.out.WriteString(s) // a byte of a multi-byte character, never special
		return
	}
	t.out.WriteString(regexp.QuoteMeta(s))
}

// translateStar translates the one or two stars that end at next.
func (t *globTranslator) translateStar() {
	if t.next == len(t.glob) || t.glob[t.next] != '*' {
		t.out.WriteString("[^/]*")
		return
	}
	t.next++
	if t.editorSyntax {
		t.out.WriteString(".*")
		return
	}
	start := t.next == 2 || t.glob[t.next-3] == '/'
	switch {
	case start && t.next < len(t.glob) && t.glob[t.next] == '/':
		t.next++
		t.out.WriteString("(?:.*/)?")
	case start && t.next == len(t.glob):
		t.out.WriteString(".*")
	default:
		t.out.WriteString("[^/]*")
	}
}

// translateClass translates the character class after a bracket. A bracket
// without a closing bracket in the same path segment is literal.
func (t *globTranslator) translateClass() {
	end := classEnd(t.glob[t.next:])
	if end < 0 || strings.Contains(t.glob[t.next:t.next+end], "/") {
		t.writeLiteral("[")
		return
	}
	set := t.glob[t.next : t.next+end]
	t.next += end + 1
	t.out.WriteByte('[')
	if set[0] == '!' || set[0] == '^' && !t.editorSyntax {
		t.out.WriteString("^/")
		set = set[1:]
	}
	for i := 0; i < len(set); i++ {
		escaped := set[i] == '\\' && i+1 < len(set)
		if escaped {
			i++
		}
		if c := set[i]; strings.IndexByte(`[]^&~\`, c) >= 0 || escaped && c == '-' {
			t.out.WriteByte('\\')
		}
		t.out.WriteByte(set[i])
	}
	t.out.WriteByte(']')
}

// classEnd returns the index of the bracket that closes a class, or -1. rest
// begins after the opening bracket. A closing bracket that comes first is a
// member of the class.
func classEnd(rest string) int {
	i := 0
	if i < len(rest) && (rest[i] == '!' || rest[i] == '^') {
		i++
	}
	for first := i; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] == ']' && i > first:
			return i
		}
	}
	return -1
}

// rangePattern matches a range of numbers, such as 1..10, and the closing
// brace.
var rangePattern = lazyregexp.New(`^([+-]?\d{1,9})\.\.([+-]?\d{1,9})\}`)

// maxBraceDepth bounds the nesting of alternatives. Deeper braces are literal.
const maxBraceDepth = 16

// translateBraces translates the text after an opening brace: a range of
// numbers, alternatives, or a literal brace.
func (t *globTranslator) translateBraces(depth int) {
	rest := t.glob[t.next:]
	if m := rangePattern().FindStringSubmatch(rest); m != nil {
		low, err1 := strconv.Atoi(m[1])
		high, err2 := strconv.Atoi(m[2])
		if err1 == nil && err2 == nil {
			t.next += len(m[0])
			t.numberRanges = append(t.numberRanges, [2]int{min(low, high), max(low, high)})
			t.out.WriteString(`([+-]?(?:0|[1-9]\d*))`)
			return
		}
	}
	if depth >= maxBraceDepth || !hasAlternatives(rest) {
		t.writeLiteral("{")
		return
	}
	t.out.WriteString("(?:")
	t.translate(depth + 1)
	t.out.WriteString(")")
}

// hasAlternatives reports whether the text after an opening brace has a comma
// and a closing brace.
func hasAlternatives(rest string) bool {
	depth, comma := 0, false
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			comma = comma || depth == 0
		case '}':
			if depth == 0 {
				return comma
			}
			depth--
		}
	}
	return false
}

// areNumbersInRange reports whether the numbers of a regular expression's match
// are in their ranges.
func (t *globTranslator) areNumbersInRange(match []string) bool {
	for i, r := range t.numberRanges {
		if match[i+1] == "" { // in an alternative that did not match
			continue
		}
		n, err := strconv.Atoi(match[i+1])
		if err != nil || n < r[0] || n > r[1] {
			return false
		}
	}
	return true
}

// workBudget is the work left for matching, in bytes of a pattern times bytes of
// a path. With Go's regexp, which does not backtrack, a unit takes at most some
// 20 ns.
type workBudget int

// trySpend reports whether the budget allows to match a path with a glob. The
// additions to the lengths are for compiling and for many short patterns.
func (b *workBudget) trySpend(glob, path string) bool {
	cost := workBudget((len(glob) + 16) * (len(path) + 64))
	if cost > *b {
		*b = 0
		return false
	}
	*b -= cost
	return true
}

// globMatches reports whether a glob matches a path. A glob that is not
// anchored may match at any depth. editorSyntax selects the syntax of
// .editorconfig instead of git's. An invalid glob matches nothing, nor does any
// once the budget is spent.
func (b *workBudget) globMatches(glob, path string, anchored, editorSyntax bool) bool {
	if !b.trySpend(glob, path) {
		return false
	}
	t := globTranslator{glob: glob, editorSyntax: editorSyntax}
	t.translate(0)
	prefix := "(?s)^(?:.*/)?"
	if anchored {
		prefix = "(?s)^"
	}
	re, err := regexp.Compile(prefix + t.out.String() + "$")
	if err != nil || !re.MatchString(path) {
		return false
	}
	return t.areNumbersInRange(re.FindStringSubmatch(path))
}

// maxPattern bounds the length of a pattern, in bytes. Longer patterns match
// nothing.
const maxPattern = 1024
