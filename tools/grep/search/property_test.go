package search_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	resyntax "regexp/syntax"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// holds reports whether text contains a literal, as Literal defines it.
func holds(text []byte, l search.Literal) bool {
	if !l.Fold {
		return bytes.Contains(text, l.Text)
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("ſ"), []byte("s")), []byte("\u212A"), []byte("k"))
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			text[i] = b + 32
		}
	}
	return bytes.Contains(text, l.Text)
}

// check checks the properties promised for every pattern and text.
func check(t *testing.T, pattern string, o search.Options, m *search.Matcher, text []byte) {
	t.Helper()
	got := run(m, text)
	require.Equal(t, run(m.WithoutLiterals(), text), got, "%q %+v on %q: literals change the answer", pattern, o, text)
	require.Equal(t, run(m.ForText(text), text), got, "%q %+v on %q: For changes the answer", pattern, o, text)
	require.Len(t, got.lines, m.Count(text), "%q %+v on %q", pattern, o, text)
	if len(got.lines) > 0 {
		for _, set := range m.RequiredLiterals() {
			require.True(t, anyHolds(text, set), "%q %+v on %q: %v is not required", pattern, o, text, set)
		}
	}
	end := 0
	for _, line := range got.lines {
		require.GreaterOrEqual(t, line[0], end, "%q %+v on %q: lines overlap", pattern, o, text)
		require.Less(t, line[0], line[1], "%q %+v on %q: empty hit", pattern, o, text)
		require.True(t, line[0] == 0 || text[line[0]-1] == '\n', "%q %+v on %q: %v", pattern, o, text, line)
		require.True(t, line[1] == len(text) || text[line[1]-1] == '\n', "%q %+v on %q: %v", pattern, o, text, line)
		require.True(t, m.CrossesLines() || bytes.IndexByte(text[line[0]:line[1]-1], '\n') < 0, "%q %+v on %q: %v", pattern, o, text, line)
		end = line[1]
	}
	if unix := bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")); m.CRLF() && !bytes.Contains(unix, []byte("\r\n")) {
		require.Equal(t, run(m, unix), got.moved(text), "%q %+v on %q: the same text with \\n", pattern, o, text)
	}
	end = 0
	for _, s := range got.spans {
		require.True(t, end <= s[0] && s[0] <= s[1] && s[1] <= len(text), "%q %+v on %q: span %v", pattern, o, text, s)
		end = s[1]
	}
}

func anyHolds(text []byte, set []search.Literal) bool {
	for _, l := range set {
		if holds(text, l) {
			return true
		}
	}
	return false
}

func TestLiteralsChangeNothing(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	matched, found := 0, 0
	for seed := range uint64(200) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		var texts [][]byte
		for range 6 {
			texts = append(texts, g.text())
		}
		texts = append(texts, bytes.Join(texts, nil))
		for range 12 {
			pattern := g.pattern()
			o := search.Options{IgnoreCase: g.one(3), Multiline: g.one(4), Literal: g.one(8)}
			m, err := search.Compile(pattern, o)
			if err != nil {
				continue
			}
			for _, text := range texts {
				check(t, pattern, o, m, text)
			}
			if matched += m.Count(texts[6]); m.HasFinder() {
				found += m.Count(texts[6])
			}
		}
	}
	require.Greater(t, matched, 5_000)
	require.Greater(t, found, 250)
}

// TestLongLiteralsChangeNothing has longer literals and repetitions than the
// generator's, in texts full of near matches.
func TestLongLiteralsChangeNothing(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(12, 7))}
	draw := func(size int, rare ...string) (text string) {
		for range size {
			if g.one(15) {
				text += pick(g, rare)
			} else {
				text += "a"
			}
		}
		return text
	}
	matched := 0
	for range 400 {
		o := search.Options{IgnoreCase: g.one(2), Multiline: g.one(2), Literal: g.one(3)}
		rare := []string{"b", "é"}
		if o.Multiline {
			rare = append(rare, "\n")
		}
		pattern := draw(17+g.IntN(20), rare...)
		if !o.Literal && g.one(2) {
			pattern = pick(g, []string{"b?a{17,30}", "(?:ab|a){20}b", "a{18}?(?:b|\\n)", "(?:aé?){17}", "a{40}", "^a{20}"})
		}
		m, err := search.Compile(pattern, o)
		if err != nil {
			continue // \n, within lines
		}
		text := []byte(draw(g.IntN(700), "b", "é", "\n", "\n", "A", "\xff") + pick(g, []string{"", pattern, "\n" + pattern}))
		check(t, pattern, o, m, text)
		matched += m.Count(text)
	}
	require.Greater(t, matched, 200)
}

// TestRequiredIsFound puts words of the pattern into long texts, where they are
// searched many bytes at a time.
func TestRequiredIsFound(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, pattern := range []string{
		"needle", "Needle42", "q", "kiss", "task1", "(?:alpha|beta|gamma)x", "foo1{1,2}?", "[ab]x[0-9]", "naïve", "ſ", "x(?:foo|barfoo)", "(?:zip|zap|zoo)",
	} {
		for _, o := range []search.Options{{}, {IgnoreCase: true}, {Multiline: true}, {IgnoreCase: true, Multiline: true}} {
			m, err := search.Compile(pattern, o)
			require.NoError(t, err)
			for _, hit := range []string{
				"needle", "NEEDLE42", "Needle42", "q", "Q", "kiss", "\u212AIſs", "TAſ\u212A1", "betax", "BETAX", "foo1", "FOO11", "bx7", "naïve", "NAÏVE", "ſ", "S", "xbarfoo", "zoo", "ZAP",
			} {
				for at := range 70 {
					text := []byte(strings.Repeat(".", at) + hit + strings.Repeat(".", 70-at) + "\n--\n" + hit)
					check(t, pattern, o, m, text)
				}
			}
		}
	}
}

func FuzzCompile(f *testing.F) {
	for seed := range uint64(60) {
		g := generator{rand.New(rand.NewPCG(seed, 9))}
		f.Add(g.pattern(), byte(seed), g.text())
	}
	f.Fuzz(func(t *testing.T, pattern string, options byte, text []byte) {
		if len(pattern) > 200 || len(text) > 5000 {
			t.Skip()
		}
		o := search.Options{IgnoreCase: options&1 != 0, Multiline: options&2 != 0, Literal: options&4 != 0}
		m, err := search.Compile(pattern, o)
		if err != nil {
			return
		}
		check(t, pattern, o, m, text)
	})
}

// commonAffixes returns, for each set of at least three literals, the beginning
// and end that all its members have in common. These are faster to find than
// many members.
var commonAffixes = regexp.MustCompile("^(?:" + strings.Join([]string{
	`[^][\\{}()?]`,                // ordinary characters, and single-character operators
	`\\[afrtv.+*?()|[\]{}^$\\/-]`, // escapes
	`\[\^?(?:[^][\\&~^-]|\\[afrtv.[\]^\\-]|[a-y]-[b-z]|[A-Y]-[B-Z]|[0-8]-[1-9])+\]`,
	`\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}`,
	`\((?:\?(?:[ims]*(?:-[is]+)?:|[ims]+\)|P<[a-z]+>))?`,
	`[)?]`,
}, "|") + ")*$")

// FuzzMatch compares with Go's regexp where both agree: ASCII texts, and
// patterns without Unicode classes and boundaries.
func FuzzMatch(f *testing.F) {
	f.Add("fo+|ba[rz]", false, "foo\nbarbaz\n")
	f.Add("(a|ab)(c|bcd)*?$", true, "ABCD\nabcbcd\nac")
	f.Add("^(?:x*|y)z{2,3}", false, "xxzzz\nzz\nz\n\n")
	f.Add("(?i)k.s[^a-c]+|", true, "Kiss\nks\n")
	f.Add("[\\]a-c]{1,2}(?:x|(?P<y>y)(?s-i:Z)){0}", true, "a-Z")
	f.Fuzz(func(t *testing.T, pattern string, fold bool, text string) {
		if !commonAffixes.MatchString(pattern) || len(pattern) > 100 || len(text) > 2000 {
			t.Skip()
		}
		for i := range len(text) {
			if text[i] >= utf8.RuneSelf {
				t.Skip()
			}
		}
		flags := map[bool]string{true: "(?mi)", false: "(?m)"}[fold]
		if _, err := resyntax.Parse(flags+pattern, resyntax.Perl); err != nil {
			t.Skip()
		}
		reference, err := regexp.Compile(flags + pattern)
		if err != nil {
			t.Skip()
		}
		m, err := search.Compile(pattern, search.Options{IgnoreCase: fold})
		if err != nil {
			t.Skip()
		}
		var want found
		for at := 0; at < len(text); {
			line, _, ended := strings.Cut(text[at:], "\n")
			end := min(at+len(line)+1, len(text))
			if ended && m.CRLF() {
				line = strings.TrimSuffix(line, "\r")
			}
			spans := reference.FindAllStringIndex(line, -1)
			if len(spans) > 0 {
				want.lines = append(want.lines, [2]int{at, end})
			}
			for _, s := range spans {
				want.spans = append(want.spans, [2]int{at + s[0], at + s[1]})
			}
			at = end
		}
		require.Equal(t, want, run(m, []byte(text)), "%q fold %v on %q", pattern, fold, text)
	})
}
