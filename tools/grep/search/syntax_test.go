package search_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// matches returns the matches in text, separated by bars.
func matches(t *testing.T, pattern string, o search.Options, text string) string {
	t.Helper()
	m, err := search.Compile(pattern, o)
	require.NoError(t, err, "%q", pattern)
	var out []string
	for _, s := range run(m, []byte(text)).spans {
		out = append(out, text[s[0]:s[1]])
	}
	return strings.Join(out, "|")
}

// syntax returns patterns, texts, and the expected matches separated by bars.
// TestSyntaxIsRipgreps runs them with ripgrep, too.
func syntax() []struct{ pattern, text, want string } {
	return []struct{ pattern, text, want string }{
		// Literals and escapes.
		{`a.c`, "abc a\nc aéc a\xffc", "abc|aéc"},
		{`\.\-\_\ \/\%\"\[`, `.-_ /%"[`, `.-_ /%"[`},
		{`\x41\x{42}\u0043\u{44}\U00000045`, "ABCDE", "ABCDE"},
		{`\a|\f|\t|\v`, "\a\f\t\v", "\a|\f|\t|\v"},
		{`a]b}c`, "a]b}c", "a]b}c"},
		// Classes.
		{`[a-c]+`, "abcd", "abc"},
		{`[^a-c\s]+`, "abcd é\xff", "d|é"},
		{`[]a]+`, "a]b", "a]"},
		{`[^]a]`, "a]b", "b"},
		{`[-a]+[a-]+`, "-a-", "-a-"},
		{`[a-z&&[^aeiou]]+`, "hello", "h|ll"},
		{`[a-e--c]+`, "abcde", "ab|de"},
		{`[a-c~~b-d]+`, "abcd", "a|d"},
		{`[a-z&&c-f--d]+`, "abcdefg", "c|ef"},
		{`[[a-c][x-z]]+`, "axq", "ax"},
		{`[[:alpha:][:digit:]_]+`, "aZ_9é", "aZ_9"},
		{`[[:^alpha:]]+`, "ab1é", "1é"},
		{`[[:foo:]]+`, "foo:bar", "foo:"},
		{`[\w&&[^\d]]+`, "ab12é", "ab|é"},
		{`[\]\\\-]+`, `]\-`, `]\-`},
		{`[a&&b]|x`, "abx", "x"},
		{`[^\s\S]|x`, "abx", "x"},
		// Unicode.
		{`\w+`, "é_日本\u0301\u200d9 ²", "é_日本\u0301\u200d9"},
		{`\d+`, "1٣²", "1٣"},
		{`\s+`, "a\u00a0\u2028\u3000b\x1c", "\u00a0\u2028\u3000"},
		{`\W+`, "a é-\xff", " |-"},
		{`\pL\p{Lu}\p{Uppercase_Letter}\p{uppercase letter}`, "éÉÉÉ", "éÉÉÉ"},
		{`\p{Greek}+|\p{sc=Cyrillic}+|\p{script:Han}`, "αβ ж 日", "αβ|ж|日"},
		{`\p{gc=Nd}+|\P{Any}`, "12a", "12"},
		{`\PL+|\P{Lu}`, "A1a", "1|a"},
		{`\p{Alphabetic}\p{White_Space}\p{ASCII}\p{Any}\p{Assigned}`, "é zé!", "é zé!"},
		// Groups and flags.
		{`(?P<year>\d{4})-(?<month>\d\d)`, "2024-05", "2024-05"},
		{`(?i)aB(?-i)c`, "abc ABc ABC", "abc|ABc"},
		{`a(?i)b|c`, "aB C A", "aB|C"},
		{`(?i:k)s`, "ks \u212As Ks kS", "ks|\u212As|Ks"},
		{`(?i)ſ|É|ß`, "sSſéÉẞ", "s|S|ſ|é|É|ẞ"},
		{`(?i)[a-c]\p{Lu}`, "Bb", "Bb"},
		{`(?i)[^k]`, "K\u212Ax", "x"},
		{`(?i)\x{FB06}|\x{390}|x\x{1FE3}`, "\uFB05 \uFB06 \u0390 \u1FD3 X\u03B0", "\uFB05|\uFB06|\u0390|\u1FD3|X\u03B0"},
		{`(?i)[\x{1FD0}-\x{1FD8}]`, "\u0390", "\u0390"},
		{`(?i)[[:^lower:]]+`, "aB1ſ\u212Aé", "1|é"},
		{`(?i)[^[:^upper:]]+`, "aB1ſ\u212Aé", "aB|ſ\u212A"},
		{`(?x) a  b # the end
		 | [ c d ]`, "ab c", "ab|c"},
		{`(?U)a+b+?`, "aabb", "aabb"},
		{`(?s).(?-s).`, "ab", "ab"},
		{`(?-u)\w+|(?u)\w`, "aé", "a|é"},
		{`(?-u:\xff)(?-u:[^a])`, "a\xff\xfe", "\xff\xfe"},
		{`(?-u:.)+`, "é\xff\n", "é\xff"},
		// Repetition.
		{`a{2}|b{2,}|c{1,2}`, "aaa bbb ccc", "aa|bbb|cc|c"},
		{`a{ 2 , 3 }`, "aaaa", "aaa"},
		{`a{1500}`, strings.Repeat("a", 1499) + " " + strings.Repeat("a", 1501), strings.Repeat("a", 1500)},
		{`a+?b??`, "aab", "a|a"},
		{`a**b?+`, "aab", "aab"},
		{`(?:a|ab)(?:c|bcd)*`, "abcd", "abcd"},
		{`(|a)+b`, "aab", "aab"},
		{`x*`, "ax", "|x"},
		{`^*a`, "a", "a"},
		// Looks.
		{`^a|b$`, "ab\nab\r\nab", "a|b|a|b|a|b"},
		{`\Aa|b\z`, "ab\nab", "a|b|a|b"},
		{`(?-m)^a$`, "a\na", "a|a"},
		{`\bé\b|\b日`, "é éa -日本", "é|日"},
		{`\Ba`, "a ba éa", "a|a"},
		{`\<\w|\w\>`, "ab cd", "a|b|c|d"},
		{`\b{start}a|b\b{end}|\b{start-half}x|y\b{end-half}`, "ab xy", "a|b|x|y"},
		{`(?-u:\b)a`, "éa", "a"},
		{`\b{2}a`, "a", "a"},
		{`\bx`, "\xffx", "x"},
		{`\Bx`, "\xffx", ""},
		{`^$`, "\n\na\n", "|"},
		{`^\s*$`, " \n\r\n", " |"},
		{`^\s*$`, " \n\r", " |\r"},
		// \r\n is one line ending, unless the pattern names \r.
		{`x;$|^}$`, "x;\r\n}\r\nx;\n}", "x;|}|x;|}"},
		{`x.*$`, "x1\r\nx2\n x3\r\r\nx\r", "x1|x2|x3\r|x\r"},
		{`[^x]*$`, "xab\r\nxc\n", "ab|c"},
		{`\s+|b\z`, "a b\r\n", " |b"},
		{`x;\r$|y\r?$`, "x;\r\ny\r\ny\nx;\n", "x;\r|y\r|y"},
		{`a[\r\n]*$`, "a\r\na\n", "a\r|a"},
		{`a[^\r\n]*$`, "ab\r\nab\n", "ab|ab"},
		{`(?-u:a.*)`, "ab\r\nab\n", "ab|ab"},
	}
}

func TestSyntax(t *testing.T) {
	for _, test := range syntax() {
		require.Equal(t, test.want, matches(t, test.pattern, search.Options{}, test.text), "%q on %q", test.pattern, test.text)
	}
}

// TestPropertyUnequal: ripgrep documents != as a negation, but treats it like
// =.
func TestPropertyUnequal(t *testing.T) {
	require.Equal(t, "ж", matches(t, `\p{sc!=Latin}+|\P{sc!=Cyrillic}`, search.Options{}, "aж"))
}

func TestMultiline(t *testing.T) {
	for _, test := range []struct{ pattern, text, want string }{
		{`a.b`, "a\nb", "a\nb"},
		{`(?-s)a.b`, "a\nb axb", "axb"},
		{`a\nb|\n\n`, "a\nb\n\n", "a\nb|\n\n"},
		{`a\s+b`, "a \r\n b", "a \r\n b"},
		{`x;\n}`, "x;\r\n}\r\nx;\n}", "x;\r\n}|x;\n}"},
		{`\n+b`, "a\r\n\n\r\nb\r\nb", "\r\n\n\r\nb|\r\nb"},
		{`;$\n^}`, "x;\r\n}", ";\r\n}"},
		{`(?-s)x.\n`, "x\r\nxy\r\n", "xy\r\n"},
		{`x.y`, "x\r\ny\nx\ny", "x\r\ny|x\ny"},
		{`x..y`, "x\r\ny\nx\r\n\ny", "x\r\n\ny"},
		{`[^a]{3}`, "b\r\nca", "b\r\nc"},
		{`b\r\na|c\r?\nd`, "b\na b\r\na c\r\nd c\nd", "b\r\na|c\r\nd|c\nd"},
		{`(?-u:x[^a]y)`, "x\r\ny", "x\r\ny"},
		{`^b$`, "a\nb\nc", "b"},
		{`\Aa|c\z`, "a\na\nc\nc", "a|c"},
		{`(?-m)^a|c$`, "a\na\nc\nc", "a|c"},
		{`[^x]+`, "a\nbx", "a\nb"},
		{`foo(?:.*?bar)?`, "foo\nbar foo", "foo\nbar|foo"},
		{`^$`, "a\n\nb\n", ""},
	} {
		require.Equal(t, test.want, matches(t, test.pattern, search.Options{Multiline: true}, test.text), "%q on %q", test.pattern, test.text)
	}
}

func TestMultilineHits(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          [][2]int
	}{
		{`b\nc`, "a\nb\nc\nd\n", [][2]int{{2, 6}}},
		{`b\n`, "a\nb\nc\n", [][2]int{{2, 4}}},
		{`a|b\nc`, "ab\nc\nd", [][2]int{{0, 5}}},       // both begin in one line
		{`a\nb|b c`, "a\nb c\nd", [][2]int{{0, 6}}},    // the first includes the second's beginning
		{`\n`, "a\nb\n", [][2]int{{0, 2}, {2, 4}}},     //
		{`x*`, "a\nb\n", [][2]int{{0, 2}, {2, 4}}},     // none after the last
		{`\z`, "a\nb", [][2]int{{2, 3}}},               //
		{`\z`, "a\nb\n", nil},                          // no line follows
		{`zz\ny`, "zz\nzz\ny\n", [][2]int{{3, 8}}},     //
		{`z{2}\s+z`, "z\nzz\nzz\n", [][2]int{{2, 8}}},  //
		{`(?s)a.*z`, "a\nz\na\nz\n", [][2]int{{0, 8}}}, //
	} {
		m, err := search.Compile(test.pattern, search.Options{Multiline: true})
		require.NoError(t, err)
		require.Equal(t, test.want, run(m, []byte(test.text)).lines, "%q on %q", test.pattern, test.text)
	}
}

func TestCrossesLines(t *testing.T) {
	for pattern, want := range map[string]bool{`foo\d+`: false, `a.b`: true, `(?-s)a.b`: false, `a\sb`: true, `[^a]`: true, `\Aa`: true, `^a$`: false} {
		m, err := search.Compile(pattern, search.Options{Multiline: true})
		require.NoError(t, err)
		require.Equal(t, want, m.CrossesLines(), pattern)
		m, err = search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		require.False(t, m.CrossesLines(), pattern)
	}
}

func TestLiteralOption(t *testing.T) {
	require.Equal(t, `a.(b`, matches(t, `a.(b`, search.Options{Literal: true}, `axb a.(b A.(B`))
	require.Equal(t, `a.(b|A.(B`, matches(t, `a.(b`, search.Options{Literal: true, IgnoreCase: true}, `axb a.(b A.(B`))
	require.Equal(t, "a\nb", matches(t, "a\nb", search.Options{Literal: true, Multiline: true}, "a\nb"))
	require.Equal(t, "|", matches(t, "", search.Options{Literal: true}, "\n\n"))
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("(", 300) + strings.Repeat(")", 300)
	for _, test := range []struct {
		pattern, says string
		at            int
	}{
		{`ab(?=c)`, "look-ahead (?= is not supported", 2},
		{`ab(?!c)`, "negative look-ahead (?! is not supported", 2},
		{`(?<=a)b`, "look-behind (?<= is not supported", 0},
		{`a(?<!a)b`, "negative look-behind (?<! is not supported", 1},
		{`(a)\1`, `back-reference \1 is not supported`, 3},
		{`(?P<x>a)(?P=x)`, "back-reference (?P= is not supported", 8},
		{`a(?>b)`, "atomic group (?> is not supported", 1},
		{`a\Z`, `escape \Z is not supported`, 1},
		{`\Qa`, `escape \Q is not supported`, 0},
		{`é\`, `\ at the end`, 2},
		{`(a`, "unclosed group", 0},
		{`a)`, "unopened group", 1},
		{`[a`, "unclosed bracket", 0},
		{`[]`, "unclosed bracket", 0},
		{`[b-a]`, "range b-a ends before it begins", 1},
		{`[\w-a]`, "single characters on both sides", 1},
		{`[\b]`, `\b within brackets`, 1},
		{`*a`, "nothing to repeat before *", 0},
		{`a|?`, "nothing to repeat before ?", 2},
		{`(?i)+`, "nothing to repeat before +", 4},
		{`func() {`, "{ without a count after it", 7},
		{`a{,2}`, "{ without a count", 1},
		{`a{2`, "unclosed repetition", 1},
		{`a{3,2}`, "minimum above its maximum", 1},
		{`a{9999999999}`, "too large", 1},
		{`\x{110000}`, "beyond the last character", 0},
		{`\ud800`, "not a character", 0},
		{`\xZZ`, "hexadecimal digits", 0},
		{`\p{Klingon}`, `Unicode property "Klingon" is not supported`, 0},
		{`\p{L`, "unclosed", 0},
		{`(?<n>a)(?<n>b)`, "duplicate group name n", 10},
		{`(?<1>a)`, "group name", 3},
		{`(?ii)a`, "given twice", 3},
		{`(?i-)a`, "flags end in -", 4},
		{`(?z)a`, "flag z is not supported", 2},
		{`(?R)a`, "flag R (CRLF mode, or recursion) is not supported", 2},
		{`(?iR:a)`, "flag R (CRLF mode, or recursion) is not supported", 3},
		{`(?)`, "has no flag", 0},
		{`\b{foo}`, "unknown word boundary", 0},
		{`\b{start`, `unclosed \b{`, 0},
		{deep, "nested more than 250 deep", 250},
	} {
		_, err := search.Compile(test.pattern, search.Options{})
		var bad *toolerr.Error
		require.True(t, errors.As(err, &bad), "%q: %v", test.pattern, err)
		require.Equal(t, toolerr.BadPattern, bad.Code(), test.pattern)
		require.Contains(t, bad.Error(), test.says, test.pattern)
		require.Contains(t, bad.Error(), fmt.Sprintf("at offset %d of the pattern", test.at), test.pattern)
		require.Contains(t, bad.Error(), "literal=true", test.pattern)
		require.Equal(t, test.at, bad.Extra()["offset"], test.pattern)
	}
	for pattern, says := range map[string]string{
		`a\nb`: "multiline=true", "a\nb": "multiline=true", `[\n]`: "multiline=true", `x|\x0a`: "multiline=true",
		"\xff": "not UTF-8", `(?:a{1000}){1000}`: "too large", `\b(?-u:\xff)`: "Unicode word boundary",
	} {
		_, err := search.Compile(pattern, search.Options{})
		require.ErrorIs(t, err, toolerr.New(toolerr.BadPattern, ""), pattern)
		require.Contains(t, err.Error(), says, pattern)
	}
	_, err := search.Compile("a\nb", search.Options{Literal: true})
	require.ErrorIs(t, err, toolerr.New(toolerr.BadPattern, ""))
}

// TestFoldingIsComplete compares -i with Go's table for every character.
func TestFoldingIsComplete(t *testing.T) {
	all, err := search.Compile(`(?i)[\x{0}-\x{10FFFF}&&[^\x{0}-\x{10FFFF}]]`, search.Options{})
	require.NoError(t, err)
	require.Zero(t, all.Count([]byte("aé")))
	var cased strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.SimpleFold(r) != r {
			cased.WriteRune(r)
			cased.WriteByte('\n')
		}
	}
	// A class this large is folded by ranges and must include every other case
	// of its members: of two cases, one is below U+1E00 or above U+2C00.
	low, err := search.Compile(`(?i)^[\x{0}-\x{1DFF}]$`, search.Options{})
	require.NoError(t, err)
	for line := range strings.Lines(cased.String()) {
		r := []rune(line)[0]
		want := r <= 0x1DFF
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			want = want || f <= 0x1DFF
		}
		require.Equal(t, want, low.Count([]byte(line)) == 1, "%U", r)
	}
}
