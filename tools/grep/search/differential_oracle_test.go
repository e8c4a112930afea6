//go:build oracle

package search_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// number is a count or seed that the environment may set.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if value := os.Getenv(name); value != "" {
		n, err := strconv.Atoi(value)
		require.NoError(t, err, "%s", name)
		return n
	}
	return otherwise
}

// found is what one search found in one text.
type found struct {
	lines [][2]int // from, to
	spans [][2]int
}

// TestSameAsRipgrep compares lines and spans for random patterns over random
// texts. GREP_CASES is the number of pairs, GREP_SEED the first seed.
func TestSameAsRipgrep(t *testing.T) {
	const textsPerTree = 40
	cases, seed := number(t, "GREP_CASES", 4000), uint64(number(t, "GREP_SEED", 1))
	rg := oracle.Path(t, "rg")
	compared, rejected, lines, defects := 0, 0, 0, 0
	keepGoing := number(t, "GREP_KEEP_GOING", 0) != 0
	for ; compared+rejected < cases; seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		texts, dir := map[string][]byte{}, t.TempDir()
		for i := range textsPerTree {
			name := fmt.Sprint(i)
			texts[name] = g.text()
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), texts[name], 0o600))
		}
		for range 25 {
			pattern := g.pattern()
			o := search.Options{IgnoreCase: g.one(4), Multiline: g.one(5)}
			want, failed := ripgrep(t, rg, dir, pattern, o)
			m, err := search.Compile(pattern, o)
			if failed != "" || err != nil {
				if (failed == "") != (err == nil) && !onlyHere(err) {
					t.Errorf("seed %d: %q %+v: ripgrep says %q, this %v", seed, pattern, o, failed, err)
				}
				rejected += textsPerTree
				continue
			}
			differs := false
			for name, text := range texts {
				if differs {
					break
				}
				got := run(m, text)
				// ripgrep leaves this one out, if it ends a text without \n.
				if n := len(got.spans); n > 0 && got.spans[n-1] == [2]int{len(text), len(text)} {
					got.spans = got.spans[:n-1]
				}
				expected := want[name]
				if mixedLooks(pattern) {
					continue
				}
				if !o.Multiline && textAnchor.MatchString(pattern) {
					// Its lines are found with each taken for a text, but its
					// spans with all the lines for one.
					got.spans, expected.spans = nil, nil
				}
				if o.Multiline && textAnchor.MatchString(pattern) {
					continue // it takes what is behind a match for a new text
				}
				if o.Multiline { // blocks may be cut differently
					got = got.joined()
					*expected = expected.joined()
				}
				compared++
				lines += len(got.lines)
				differs = !slices.Equal(got.lines, expected.lines) || !slices.Equal(got.spans, expected.spans)
				if !slices.Equal(got.lines, expected.lines) {
					t.Errorf("seed %d: %q %+v on %q: lines %v, ripgrep's %v", seed, pattern, o, text, got.lines, expected.lines)
				} else if differs && sameWithoutSuffix(t, rg, dir, name, pattern, o, got) {
					differs, defects = false, defects+1
				} else if differs {
					t.Errorf("seed %d: %q %+v on %q: spans %v, ripgrep's %v", seed, pattern, o, text, got.spans, expected.spans)
				}
			}
			if t.Failed() && !keepGoing {
				t.FailNow()
			}
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	require.Positive(t, lines, "nothing matched: the generator is broken")
	t.Logf("%d pairs compared, %d rejected by both, %d matching lines, %d where ripgrep disagrees with itself",
		compared, rejected, lines, defects)
}

var textAnchor = regexp.MustCompile(`\\A|\\z|\(\?[a-z]*-[a-z]*m`)

// mixedLooks reports a \B of ASCII beside a look of Unicode, which holds
// within characters only there.
func mixedLooks(pattern string) bool {
	rest := strings.ReplaceAll(pattern, `(?-u:\B)`, "")
	return rest != pattern && unicodeLook.MatchString(strings.ReplaceAll(rest, `(?-u:\b)`, "")) ||
		strings.Contains(pattern, "(?-u)") && unicodeLook.MatchString(pattern)
}

// sameWithoutSuffix asks again with an alternative that never matches, which
// keeps ripgrep from searching back from a literal that the pattern ends with:
// doing so it sometimes misses the match that begins first.
func sameWithoutSuffix(t *testing.T, rg, dir, name, pattern string, o search.Options, got found) bool {
	t.Helper()
	want, failed := ripgrep(t, rg, dir, `(?:`+pattern+`)|\x{10FFFD}[^a]`, o)
	if failed != "" {
		return false
	}
	if o.Multiline {
		*want[name] = want[name].joined()
	}
	return slices.Equal(got.lines, want[name].lines) && slices.Equal(got.spans, want[name].spans)
}

var unicodeLook = regexp.MustCompile(`\\[bB<>]`)

// onlyHere reports a limit that ripgrep does not have.
func onlyHere(err error) bool {
	return err != nil && (bytes.Contains([]byte(err.Error()), []byte("too large")) || bytes.Contains([]byte(err.Error()), []byte("both a Unicode word boundary")))
}

func run(m *search.Matcher, text []byte) (f found) {
	for hit, ok := m.Next(text, 0); ok; hit, ok = m.Next(text, hit.End) {
		f.lines = append(f.lines, [2]int{hit.Start, hit.End})
		m.Spans(text, hit, func(start, end int) bool {
			f.spans = append(f.spans, [2]int{start, end})
			return true
		})
	}
	return f
}

// joined makes lines that touch one block and leaves out empty spans.
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

type rgText struct {
	Text  *string `json:"text"`
	Bytes string  `json:"bytes"`
}

func (x rgText) content() []byte {
	if x.Text != nil {
		return []byte(*x.Text)
	}
	content, _ := base64.StdEncoding.DecodeString(x.Bytes)
	return content
}

type rgEvent struct {
	Type string `json:"type"`
	Data struct {
		Path       rgText `json:"path"`
		Lines      rgText `json:"lines"`
		Offset     int    `json:"absolute_offset"`
		Submatches []struct{ Start, End int }
	} `json:"data"`
}

func ripgrep(t *testing.T, rg, dir, pattern string, o search.Options) (map[string]*found, string) {
	t.Helper()
	args := []string{"--no-config", "--json", "-a", "--encoding", "none", "--hidden", "--no-ignore", "-j1"}
	if o.IgnoreCase {
		args = append(args, "-i")
	}
	if o.Multiline {
		args = append(args, "-U", "--multiline-dotall")
	}
	cmd := exec.Command(rg, append(args, "-e", pattern, ".")...)
	cmd.Dir = dir
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		return nil, errors.String()
	}
	all := map[string]*found{}
	for i := range 1000 {
		all[fmt.Sprint(i)] = &found{}
	}
	for _, line := range bytes.Split(out, []byte("\n")) {
		var event rgEvent
		if len(line) == 0 {
			continue
		}
		require.NoError(t, json.Unmarshal(line, &event))
		if event.Type != "match" {
			continue
		}
		f := all[filepath.Base(string(event.Data.Path.content()))]
		content := event.Data.Lines.content()
		f.lines = append(f.lines, [2]int{event.Data.Offset, event.Data.Offset + len(content)})
		for _, s := range event.Data.Submatches {
			if s.Start == s.End && withinCharacter(content, s.Start) {
				continue
			}
			f.spans = append(f.spans, [2]int{event.Data.Offset + s.Start, event.Data.Offset + s.End})
		}
	}
	return all, ""
}

func withinCharacter(text []byte, at int) bool {
	for i := 0; i < at; {
		_, size := utf8.DecodeRune(text[i:])
		if i += size; i > at {
			return true
		}
	}
	return false
}

// generator makes patterns and texts of the same few characters, so that they
// meet.
type generator struct{ *rand.Rand }

func (g generator) one(in int) bool { return g.IntN(in) == 0 }

func pick[T any](g generator, from []T) T { return from[g.IntN(len(from))] }

var pieces = []string{
	"a", "b", "a", "b", "ab", "foo", "Foo", "bar", "k", "K", "s", "S", "task", "x", "_", "1", "42", " ", " ", "-", ".", "é", "É", "ß", "ẞ",
	"ſ", "\u212A", "ж", "Ж", "日本", "\u0301", "\t", "σ", "ς", "Σ", "{", "}", "(", "\u2028", "\u00A0", "𝒳", "\u200d", "ǅ",
}

func (g generator) text() []byte {
	var text []byte
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
		if g.one(8) {
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

// damaged changes a few bytes of ASCII, to be read alike or refused alike.
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

// quote escapes what has a meaning, and sometimes forgets to.
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
			class += pick(g, []string{"[:alpha:]", "[:^digit:]", "[:space:]", "[:upper:]", "[:word:]"})
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
