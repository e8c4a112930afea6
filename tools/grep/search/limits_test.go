package search_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// The tests of this file would not end, or take gigabytes, if searches were not
// linear in the text.

func TestOneLongLine(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const count = 500_000
	line := []byte(strings.Repeat("abcdefghi ", count)) // 5 MB
	for _, pattern := range []string{"a", `\ba`, `(?i)ABC`, `a.*?c|zz`} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		hit, ok := m.Next(line, 0)
		require.True(t, ok)
		require.Equal(t, search.MatchedLines{Start: 0, End: len(line)}, hit)
		spans := 0
		m.EachMatch(line, hit, func(start, end int) bool {
			spans++
			return true
		})
		require.Equal(t, count, spans, pattern)
	}
}

// TestManyMatchesInOneBlock: the end of a line is not searched again for each
// match in it.
func TestManyMatchesInOneBlock(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	text := []byte(strings.Repeat("ab cd ", 2_000_000) + "\nend") // 12 MB
	m, err := search.Compile(`ab\s|\nend`, search.Options{Multiline: true})
	require.NoError(t, err)
	require.True(t, m.CrossesLines())
	require.Equal(t, 1, m.Count(text))
	hit, ok := m.Next(text, 0)
	require.True(t, ok)
	require.Equal(t, search.MatchedLines{Start: 0, End: len(text)}, hit)
}

// A single pass over a large text can be stopped.
func TestUntilStopsWithinAPass(t *testing.T) {
	text := bytes.Repeat([]byte("x"), 16<<20)
	for _, pattern := range []string{`y*x{2,}y`, `x+`} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		asked := 0
		m = m.WithoutLiterals().StopWhen(func() bool { asked++; return asked > 1 })
		m.EachMatch(text, search.MatchedLines{End: len(text)}, func(start, end int) bool {
			t.Fatal("a span of what was stopped")
			return false
		})
		require.Equal(t, 2, asked, pattern)
	}
}

func TestManyLines(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const count = 100_000
	text := []byte(strings.Repeat("abc def\n", count))
	for pattern, want := range map[string]int{
		".": count, "e": count, "abc": count, "(?i)ABC": count, `\bdef\b`: count, "^": count, "$": count, "": count, "def|zzz|qqq": count,
		"abcx": 0, `abc\d`: 0, "x|q|z": 0, `(x+x+)+y`: 0, `c.*\d`: 0,
	} {
		for _, multiline := range []bool{false, true} {
			m, err := search.Compile(pattern, search.Options{Multiline: multiline && pattern != `c.*\d`})
			require.NoError(t, err)
			require.Equal(t, want, m.Count(text), "%q multiline %v", pattern, multiline)
		}
	}
}

// TestNestedRepetition has patterns that take a backtracking matcher
// exponential time.
func TestNestedRepetition(t *testing.T) {
	text := []byte(strings.Repeat("x", 200_000) + "\n")
	for _, pattern := range []string{`(x+x+)+y`, `(x*)*y`, `(x|x)*y`, `(.*.*)*y`, `(x?){40}x{40}y`, `x*x*x*x*y`} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		m = m.WithoutLiterals() // otherwise nothing would be matched
		require.Zero(t, m.Count(text), pattern)
		require.Equal(t, 1, m.Count(append(text[:len(text)-1:len(text)-1], "y\n"...)), pattern)
	}
}

// TestManyStates has a pattern that makes a new state at nearly every symbol,
// so that the states are dropped repeatedly.
func TestManyStates(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	var text []byte
	for i := uint32(1); len(text) < 300_000; i = i*1664525 + 1013904223 {
		text = append(text, "ab"[i>>30&1])
	}
	m, err := search.Compile(`[ab]*a[ab]{14}c|b[ab]{14}\bx`, search.Options{})
	require.NoError(t, err)
	require.Zero(t, m.WithoutLiterals().Count(text))
	marked := append(bytes.Clone(text), "aabababababababbc"...)
	require.Equal(t, 1, m.Count(marked))
	hit, ok := m.Next(marked, 0)
	require.True(t, ok)
	var spans []string
	m.EachMatch(marked, hit, func(start, end int) bool {
		spans = append(spans, fmt.Sprint(start, end))
		return true
	})
	require.Equal(t, []string{fmt.Sprint(0, len(marked))}, spans)
}

func TestUntilStops(t *testing.T) {
	text := bytes.Repeat([]byte("abababab"), 1<<18)
	m, err := search.Compile(`(a|b).{500}x|x$`, search.Options{})
	require.NoError(t, err)
	asked := 0
	m = m.WithoutLiterals().StopWhen(func() bool {
		asked++
		return asked > 1
	})
	_, ok := m.Next(text, 0)
	require.False(t, ok)
	require.Equal(t, 2, asked, "it went on after it was stopped, or never asked")
	require.Zero(t, m.Count(text))
	m.EachMatch(text, search.MatchedLines{End: len(text)}, func(start, end int) bool {
		t.Fatal("a span of what was stopped")
		return false
	})
}

// stop is also called between many short matches in one line.
func TestUntilStopsBetweenMatches(t *testing.T) {
	text := bytes.Repeat([]byte("x"), 1<<20)
	for _, pattern := range []string{"x", "x*?", `\b|x`} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		spans := 0
		m.StopWhen(func() bool { return true }).EachMatch(text, search.MatchedLines{End: len(text)}, func(start, end int) bool {
			spans++
			return true
		})
		require.Less(t, spans, len(text)/2, pattern)
	}
}

// TestLongLiteral has literals with near matches at every position of a text:
// comparing each of them would not end.
func TestLongLiteral(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const size = 100_000
	near := bytes.Repeat([]byte(strings.Repeat("a", size-1)+"b"), 10)
	all := bytes.Repeat([]byte("a"), 10*size)
	for _, o := range []search.Options{{}, {Literal: true}, {IgnoreCase: true}, {Multiline: true}} {
		m, err := search.Compile(strings.Repeat("a", size), o)
		require.NoError(t, err)
		require.Zero(t, m.Count(near), "%+v", o)
		require.Equal(t, 1, m.Count(append(bytes.Clone(near), all[:size]...)), "%+v", o)
		hit, ok := m.Next(all, 0)
		require.True(t, ok, "%+v", o)
		spans := 0
		m.EachMatch(all, hit, func(start, end int) bool {
			require.Equal(t, []int{spans * size, (spans + 1) * size}, []int{start, end}, "%+v", o)
			spans++
			return true
		})
		require.Equal(t, 10, spans, "%+v", o)
	}
}

// TestLargePatterns: patterns with many parts share large sets, or are refused.
func TestLargePatterns(t *testing.T) {
	for _, test := range []struct {
		pattern string
		literal bool
		refused bool
	}{
		{strings.Repeat(`\p{L}?`, 30_000), false, false}, {strings.Repeat(`\W?[^a]?`, 15_000), false, false}, {strings.Repeat("word|", 20_000), false, false},
		{strings.Repeat("|", 1_000_000), false, true}, {strings.Repeat("a", 1_000_000), false, true}, {strings.Repeat("a", 1_000_000), true, true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := search.Compile(test.pattern, search.Options{Literal: test.literal})
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), test.pattern[:9])
		if test.refused {
			require.ErrorContains(t, err, "too large", test.pattern[:9])
		} else {
			require.NoError(t, err, test.pattern[:9])
		}
	}
}

// The search for the beginning of a match can be stopped, too.
func TestUntilStopsGoingBack(t *testing.T) {
	text := []byte("x")
	for i := uint32(1); len(text) < 300_000; i = i*1664525 + 1013904223 {
		text = append(text, "ab"[i>>30&1])
	}
	text = append(text[:15], "a"+string(text[15:])+"y"...)
	m, err := search.Compile(`x[ab]{14}a[ab]*y`, search.Options{}) // few states forward, many backward
	require.NoError(t, err)
	whole := search.MatchedLines{End: len(text)}
	spans, asked := 0, 0
	count := func(start, end int) bool { spans++; return true }
	m.EachMatch(text, whole, count)
	require.Equal(t, 1, spans)
	m.StopWhen(func() bool { asked++; return true }).EachMatch(text, whole, count)
	require.NotZero(t, asked)
	require.Equal(t, 1, spans, "a span of what was stopped")
}

func TestConcurrentUse(t *testing.T) {
	m, err := search.Compile(`\w+é\b|x[0-9]{2,}`, search.Options{IgnoreCase: true})
	require.NoError(t, err)
	text := []byte(strings.Repeat("abcÉ x12 é\nnothing here\n", 500))
	var all sync.WaitGroup
	counts := make([]int, 8)
	for i := range counts {
		all.Go(func() { counts[i] = m.Count(text) })
	}
	all.Wait()
	for _, n := range counts {
		require.Equal(t, 500, n)
	}
}

func TestNextFromTheEnd(t *testing.T) {
	m, err := search.Compile("", search.Options{})
	require.NoError(t, err)
	for text, want := range map[string]int{"": 0, "\n": 1, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, "\r": 1} {
		require.Equal(t, want, m.Count([]byte(text)), "%q", text)
		_, ok := m.Next([]byte(text), len(text))
		require.False(t, ok, "%q", text)
	}
}

func TestRequired(t *testing.T) {
	for pattern, want := range map[string]string{
		`ErrUnexpectedEOF`: `[[ErrUnexpectedEOF]]`,
		`(?i)Task`:         `[[/task/i]]`,
		`func \w+Reader\(`: `[[func ] [Reader(]]`,
		`(foo|bar)\d+`:     `[[foo bar]]`,
		`\bfunc\b`:         `[[func]]`,
		`foo.*bar`:         `[[foo] [bar]]`,
		`foo.*bar.*baz`:    `[[foo] [baz] [bar]]`,
		`(?:ab)+c`:         `[[abc]]`,
		`[Ff]unc`:          `[[/func/i]]`,
		`a|`:               `[]`,
		`x*`:               `[]`,
		`\w+`:              `[]`,
		`(?i)é`:            `[[É é]]`,
		`(abc|x.*yz)\d`:    `[[abc x] [abc yz]]`,
		`colou?r`:          `[[colour color]]`,
		`(?:foo|bar)?baz`:  `[[foobaz barbaz baz]]`,
		`(?i:k)elvin`:      `[[/kelvin/i]]`,
		`-{7}x`:            `[[-------x]]`,
		`x=(?:ab){5,}`:     `[[x=ababababab]]`,
		`(?i)(?:12a){3}é`:  `[[/12a12a12aÉ/i /12a12a12aé/i]]`,
		`(?:^a){6}`:        `[[aaaaaa]]`,
	} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		var sets []string
		for _, set := range m.RequiredLiterals() {
			var members []string
			for _, l := range set {
				text := string(l.Text)
				if l.Fold {
					text = "/" + text + "/i"
				}
				members = append(members, text)
			}
			sets = append(sets, "["+strings.Join(members, " ")+"]")
		}
		require.Equal(t, want, "["+strings.Join(sets, " ")+"]", pattern)
	}
}

func TestPureNeedsNoMatching(t *testing.T) {
	for pattern, want := range map[string]bool{
		"return": true, "(?i)error": true, "foo|barfoo": true, "[Ff]oo": false, `\bfoo`: false, "^foo": false, `foo\d`: false,
		"-{30}": true, "-{5000}": false, "[fF]oo[A]": false, "(?i:foo)bar": false, "foo+": false,
	} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err)
		require.True(t, m.HasFinder(), pattern)
		if m.Pure() != want {
			t.Errorf("%s: pure %v", pattern, m.Pure())
		}
	}
}

// An expression that matches only the empty text may be repeated without limit.
func TestNothingRepeated(t *testing.T) {
	for _, pattern := range []string{`(){4294967295}`, `((){4294967295}){4294967295}a`, `(?:(?:x{0}){4294967295}){1000000,}`} {
		m, err := search.Compile(pattern, search.Options{})
		require.NoError(t, err, pattern)
		require.Equal(t, 1, m.Count([]byte("a\n")), pattern)
	}
}

// Parsing and compiling a pattern that takes seconds stops when its context
// ends, at any point.
func TestCompileIsGivenUp(t *testing.T) {
	for what, pattern := range map[string]string{
		"parts":           strings.Repeat("a", 2000),
		"classes":         strings.Repeat(`[!-\x{fffff}]`, 2000),
		"nested classes":  "[" + strings.Repeat(`[!-\x{fffff}]`, 2000) + "]",
		"items":           "[" + strings.Repeat(`\w`, 2000) + "]",
		"operators":       "[" + strings.Repeat(`\w&&`, 2000) + "]",
		"empty operators": `[\w` + strings.Repeat(`~~`, 2000) + "]",
		"no such class":   "[" + strings.Repeat(`[:a]`, 2000) + "]",
		"the program":     manyClasses(1000),
	} {
		const often = 1 << 20
		all := &endsAfter{Context: t.Context(), left: often}
		_, err := search.CompileContext(all, pattern, search.Options{})
		require.NoError(t, err, what)
		asked := often - all.left
		require.Greater(t, asked, 100, what)
		for _, left := range []int{0, asked / 2, asked - 1} {
			_, err = search.CompileContext(&endsAfter{Context: t.Context(), left: left}, pattern, search.Options{})
			require.ErrorIs(t, err, context.Canceled, what)
		}
	}
}

// endsAfter is a context that ends after a number of calls of Err.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// manyClasses returns a pattern of n different classes.
func manyClasses(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `[a\x{%x}]`, 0x13000+2*i)
	}
	return b.String()
}

// Patterns with too many classes are refused before they take much memory.
func TestClassesAreBounded(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	allocated := func(pattern string) (uint64, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := search.Compile(pattern, search.Options{})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	_, err := allocated(strings.Repeat(`[\p{L}1]`, 5000))
	require.ErrorContains(t, err, "too large")
	once, err := allocated(`[\w]`)
	require.NoError(t, err)
	often, err := allocated("[" + strings.Repeat(`\w`, 5000) + "]")
	require.NoError(t, err)
	require.Less(t, often, once+5000*2000, "a class of the same again and again is collected")
}
