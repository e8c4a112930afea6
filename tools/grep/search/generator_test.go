package search_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// found is the result of a search in one text.
type found struct {
	lines [][2]int // from, to
	spans [][2]int
}

func run(m *search.Matcher, text []byte) (f found) {
	for hit, ok := m.Next(text, 0); ok; hit, ok = m.Next(text, hit.End) {
		f.lines = append(f.lines, [2]int{hit.Start, hit.End})
		m.EachMatch(text, hit, func(start, end int) bool {
			f.spans = append(f.spans, [2]int{start, end})
			return true
		})
	}
	return f
}

// joined merges adjacent lines into blocks and drops empty spans.
func (f *found) joined() (out found) {
	for _, l := range f.lines {
		if n := len(out.lines); n > 0 && out.lines[n-1][1] == l[0] {
			out.lines[n-1][1] = l[1]
		} else {
			out.lines = append(out.lines, l)
		}
	}
	for _, s := range f.spans {
		if s[0] != s[1] {
			out.spans = append(out.spans, s)
		}
	}
	return out
}

// moved converts the offsets of f in text to those in the same text with \n for
// each \r\n.
func (f found) moved(text []byte) (out found) {
	move := func(from [][2]int) (to [][2]int) {
		for _, s := range from {
			for i, at := range s {
				s[i] = at - bytes.Count(text[:at], []byte("\r\n"))
			}
			to = append(to, s)
		}
		return to
	}
	return found{lines: move(f.lines), spans: move(f.spans)}
}

// generator makes patterns and texts from the same few characters, so that they
// match.
type generator struct{ *rand.Rand }

func (g generator) one(in int) bool { return g.IntN(in) == 0 }

func pick[T any](g generator, from []T) T { return from[g.IntN(len(from))] }

var pieces = []string{
	"a", "b", "a", "b", "ab", "foo", "Foo", "bar", "k", "K", "s", "S", "task", "x", "_", "1", "42", " ", " ", "-", ".", "é", "É", "ß", "ẞ",
	"ſ", "\u212A", "ж", "Ж", "日本", "\u0301", "\t", "σ", "ς", "Σ", "{", "}", "(", "\u2028", "\u00A0", "𝒳", "\u200d", "ǅ",
}

func (g generator) text() []byte {
	var text []byte
	returns := []int{8, 8, 2, 1}[g.IntN(4)] // one line in that many ends in \r\n
	for range g.IntN(12) {
		for range g.IntN(9) {
			switch {
			case g.one(30):
				text = append(text, pick(g, []string{"\xff", "\xe6\x97", "\xc3", "\xf0\x9d", "\xed\xa0\xbd"})...)
			case g.one(30):
				text = append(text, '\r')
			default:
				text = append(text, pick(g, pieces)...)
			}
		}
		if g.one(returns) {
			text = append(text, '\r')
		}
		text = append(text, '\n')
	}
	if len(text) > 0 && g.one(3) {
		text = text[:len(text)-1]
	}
	return text
}

func (g generator) pattern() string {
	pattern := g.alternation(3)
	if g.one(12) {
		pattern = pick(g, []string{"(?i)", "(?s)", "(?-m)", "(?U)", "(?x)", "(?m-i)", "(?-u)"}) + pattern
	}
	if g.one(8) {
		return g.damaged(pattern)
	}
	return pattern
}

// damaged changes a few ASCII bytes; both programs must accept or refuse the
// result.
func (g generator) damaged(pattern string) string {
	for range 1 + g.IntN(2) {
		i := g.IntN(len(pattern) + 1)
		for i < len(pattern) && !utf8.RuneStart(pattern[i]) {
			i++
		}
		rest := pattern[i:]
		if len(rest) > 0 && rest[0] < utf8.RuneSelf && g.one(3) {
			rest = rest[1:]
		}
		pattern = pattern[:i] + pick(g, strings.Fields(`( ) { } [ ] * + ? | ^ $ \ & - ~ : < > , (?x) # ' / @ 0 9 Z \Q \e \pN \ && -- ~~ [^ {, ,} {2, 3} [: :] (?: \x6 \u{ \b{`)) + rest
	}
	return pattern
}

func (g generator) alternation(depth int) string {
	pattern := g.concatenation(depth)
	for g.one(4) {
		pattern += "|" + g.concatenation(depth)
	}
	return pattern
}

func (g generator) concatenation(depth int) string {
	pattern := ""
	for range g.IntN(4) + g.IntN(2) {
		pattern += g.item(depth)
		switch g.IntN(14) {
		case 0:
			pattern += "*"
		case 1:
			pattern += "+"
		case 2:
			pattern += "?"
		case 3:
			pattern += pick(g, []string{"{2}", "{0,2}", "{1,}", "{0}", "{2,3}", "*?", "+?", "??", "{1,2}?"})
		}
	}
	return pattern
}

var escapes = []string{
	`\w`, `\W`, `\d`, `\D`, `\s`, `\S`, `\pL`, `\p{Lu}`, `\PL`, `\p{Greek}`, `\p{Cyrillic}`, `\p{Alphabetic}`, `\p{lower}`, `\x61`, `\x{e9}`, `\u00e9`,
	`\t`, `\r`, `\.`, `\-`, `.`, `.`, `\p{han}`, `\p{script=Latin}`, `\pM`, `\p{White_Space}`, `(?-u:\w)`, `(?-u:[^a])`, `(?-u:\xff)`, `(?-u:.)`,
}

var looks = []string{
	`^`, `$`, `\b`, `\B`, `\b`, `\A`, `\z`, `\<`, `\>`, `\b{start}`, `\b{end}`, `\b{start-half}`, `\b{end-half}`, `(?-u:\b)`, `(?-u:\B)`, `(?-m:^)`, `(?-m:$)`,
}

func (g generator) item(depth int) string {
	switch n := g.IntN(20); {
	case n < 9 || depth == 0:
		return quote(pick(g, pieces))
	case n < 12:
		return pick(g, escapes)
	case n < 14:
		return pick(g, looks)
	case n < 16:
		return g.class(2)
	}
	return pick(g, []string{"(", "(?:", "(?:", "(?i:", "(?s:", "(?-i:", "(?P<n" + strconv.Itoa(g.IntN(1000000)) + ">"}) + g.alternation(depth-1) + ")"
}

// quote escapes special characters, and sometimes omits it.
func quote(s string) string {
	if slices.Contains([]string{".", "(", "{", "}", "-"}, s) {
		return `\` + s
	}
	return s
}

func (g generator) class(depth int) string {
	class := "["
	if g.one(3) {
		class += "^"
	}
	for range 1 + g.IntN(3) {
		switch g.IntN(8) {
		case 0, 1, 2:
			class += pick(g, []string{"a", "b", "k", "s", "é", "ж", "1", " ", "_", "ſ"})
		case 3:
			class += pick(g, []string{"a-f", "A-Z", "0-9", "а-я", "à-ü", "k-t", " -~", `\x00-\x7f`})
		case 4:
			class += pick(g, []string{`\w`, `\d`, `\s`, `\W`, `\S`, `\pL`, `\P{Lu}`, `\p{Greek}`, `\t`, `\r`, `\n`, `\]`})
		case 5:
			class += pick(g, []string{"[:alpha:]", "[:^digit:]", "[:space:]", "[:upper:]", "[:word:]", "[:^lower:]"})
		default:
			if depth > 0 {
				class += pick(g, []string{"&&", "--", "~~", ""}) + g.class(depth-1)
			} else {
				class += "x"
			}
		}
	}
	return class + "]"
}
