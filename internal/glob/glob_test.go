package glob_test

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no string // space-separated paths
	}{
		{"*.go", "a.go x/a.go x/y/.go", "a.got go"},
		{"main.go", "main.go x/main.go", "xmain.go main.go/x"},
		{"test_*", "test_a x/test_", "atest_a test_x/b"},
		{"a*z", "az abz x/abcz", "a z abzc"},
		{"**", "a a/b .x/y", ""},
		{"*", "a a/b", ""},
		{"/*", "a", "a/b"},
		{"./*.go", "a.go", "x/a.go"},
		{"src/**", "src src/a src/a/b", "a/src srcs"},
		{"src/**/*.go", "src/a.go src/x/y/a.go", "a.go src/a.c"},
		{"src//./**/**/a", "src/a src/x/a", "src"},
		{"**/a/**/b", "a/b x/a/b x/a/y/z/b a/a/b/b", "a b a/bb b/a"},
		{"a/*/c", "a/b/c", "a/c a/b/b/c"},
		{"*.{ts,tsx}", "a.ts x/b.tsx", "a.js"},
		{"{src,lib}/**/*.{c,h}", "src/a.c lib/x/y.h", "doc/a.c src/a.o"},
		{"{a,b/c}", "a b/c", "x/a c"},
		{"a{,b}", "a ab x/ab", "b"},
		{"x/{a,{b,c}d}/e", "x/a/e x/bd/e x/cd/e", "x/b/e"},
		{"[id].tsx", "[id].tsx i.tsx d.tsx app/[id].tsx", "id.tsx x.tsx"},
		{"app/[user-id]/*.tsx", "app/[user-id]/page.tsx", "app/user-id/page.tsx"},
		{"[...slug].js", "[...slug].js s.js", "[slug].js"},
		{"[[...slug]]/page.js", "[[...slug]]/page.js", "[...slug]/page.js"},
		{"{{name}}.txt", "{{name}}.txt name.txt", "x.txt"},
		{"[^a]x", "bx y/cx", "ax"},
		{"[!a-c]", "d x/e", "a b c"},
		{"a[^b]c", "axc", "a/c abc"},
		{"?", "a ü x/y", "ab"},
		{`\*`, "* x/*", "a"},
		{`\[x\]`, "[x]", "x"},
		{`a\/b`, "a/b", "ab x/a/b"},
		{"node_modules/", "node_modules x/node_modules", "node_modules/x"},
		{"a**b", "ab axb", "a/b"},
		{"***", "a x/y", ""},
		{"**/*", "a x/y", ""},
		{"*.*", "a.b x/.y", "ab"},
		{"*a*b*", "ab xaybz", "ba"},
		{"é*", "éa", "ea"},
		{"A.go", "A.go", "a.go"},
		{"[[:upper:]]*.go", "A.go x/Bc.go", "a.go 1.go"},
		{"[[:digit:]a-]", "1 a - [[:digit:]a-]", "b : ["},
		{"[![:alpha:]_]x", "1x -x", "ax _x"},
		{"[[]x", "[x", "]x x"},
		{"[]]x", "]x []]x", "[x x"},
		{"[!]]x", "[x ax", "]x"},
		{"[[:nope:]a]", "a", "n : ["},
		{"[b-a]x", "[b-a]x", "ax bx"},
		{"x[+-a]y", "x+y x1y xay", "x/y x!y"},
		{"x[!a]y/**", "xby xby/z", "x/y xay/z"},
	} {
		g, err := glob.Compile(c.pattern)
		require.NoError(t, err, c.pattern)
		require.NoError(t, g.Fault(), c.pattern)
		for _, p := range strings.Fields(c.yes) {
			require.True(t, g.Match(p), "%s matches %s", c.pattern, p)
			for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
				require.True(t, g.MayMatchBelow(dir), "%s: %s is entered for %s", c.pattern, dir, p)
			}
		}
		for _, p := range strings.Fields(c.no) {
			require.False(t, g.Match(p), "%s matches not %s", c.pattern, p)
		}
	}
}

func TestFold(t *testing.T) {
	g, err := glob.CompileFold("SRC/**/read[A-Z]e.{MD,txt}")
	require.NoError(t, err)
	require.True(t, g.Match("src/a/READme.md"))
	require.True(t, g.MayMatchBelow("Src"))
	require.False(t, g.Match("src/a/read_e.md"))
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		position int
		text     string
		literal  string // the path that the pattern matches as a plain name
	}{
		{"src/a[.go", 6, "unclosed", "src/a[.go"},
		{"é[", 2, "unclosed", "é["},
		{"*.{ts,js", 3, "unclosed", "x.{ts,js"},
		{"a}", 2, "unmatched", "a}"},
		{"[]", 1, "empty class", "[]"},
		{"[]x", 1, "empty class", "[]x"},
		{"[[:upper:]", 1, "unclosed", "[[:upper:]"},
		{"x[!]y", 2, "empty class", "x[!]y"},
		{`x\`, 2, "trailing backslash", `x\`},
		{"{a,{b}", 1, "unclosed", ""},
	} {
		g, err := glob.Compile(c.pattern)
		require.NoError(t, err, c.pattern)
		require.Error(t, g.Fault(), c.pattern)
		if !strings.Contains(c.pattern, "[:") { // doublestar does not support such classes
			require.False(t, doublestar.ValidatePattern(c.pattern))
		}
		require.Equal(t, toolerr.BadPattern, toolerr.CodeOf(g.Fault()))
		require.ErrorContains(t, g.Fault(), c.text)
		var e *toolerr.Error
		require.ErrorAs(t, g.Fault(), &e)
		require.Equal(t, c.position, e.Extra()["position"], c.pattern)
		if c.literal != "" {
			require.True(t, g.Match(c.literal), "%s is found as such", c.pattern)
		}
	}
}

func TestRefused(t *testing.T) {
	for pattern, code := range map[string]toolerr.Code{
		"":                          toolerr.BadPattern,
		"/":                         toolerr.BadPattern,
		"./":                        toolerr.BadPattern,
		"a\x00b":                    toolerr.BadPattern,
		strings.Repeat("a", 5000):   toolerr.BadPattern,
		strings.Repeat("{a,b}", 40): toolerr.BadPattern,
		"../x":                      toolerr.OutsideRoot,
		"a/../../b":                 toolerr.OutsideRoot,
		"{a,../b}/c":                toolerr.OutsideRoot,
		`\.\./x`:                    toolerr.OutsideRoot,
		"..":                        toolerr.OutsideRoot,
	} {
		_, err := glob.Compile(pattern)
		require.Equal(t, code, toolerr.CodeOf(err), pattern)
	}
}

func TestPrefixAndEnter(t *testing.T) {
	for _, c := range []struct {
		pattern, prefix string
		enter, not      string
	}{
		{"src/a/**/*.go", "src/a", "src src/a src/a/b", "lib src/b"},
		{"*.go", "", "a a/b", ""},
		{"src/*/x.go", "src", "src src/a", "src/a/b lib"},
		{"{src/a,src/b}/*.go", "src", "src/a src/b", "src/c src/a/x"},
		{"src/[id]/x", "src", "src/[id] src/i", "src/x"},
		{"/a.go", "", "", "x"},
		{`a\*b/c/d`, "a*b/c", "a*b a*b/c", "axb"},
		{"a/b", "a", "a", "b a/b"},
	} {
		g, err := glob.Compile(c.pattern)
		require.NoError(t, err)
		require.Equal(t, c.prefix, g.Prefix(), c.pattern)
		for _, dir := range strings.Fields(c.enter) {
			require.True(t, g.MayMatchBelow(dir), "%s enters %s", c.pattern, dir)
		}
		for _, dir := range strings.Fields(c.not) {
			require.False(t, g.MayMatchBelow(dir), "%s prunes %s", c.pattern, dir)
		}
	}
	g, err := glob.Compile("src/{a,b}/*.go")
	require.NoError(t, err)
	require.True(t, g.RelativeToPrefix().Match("b/x.go"))
	require.False(t, g.RelativeToPrefix().Match("src/b/x.go"))
}

func TestLiteral(t *testing.T) {
	name := `we[ir]d {a,b}*?\ name`
	g, err := glob.Compile(glob.QuoteMeta(name))
	require.NoError(t, err)
	require.True(t, g.Match(name))
}

// TestMatchEntry: a path that is not a directory has nothing below it and
// matches no pattern with a final slash.
func TestMatchEntry(t *testing.T) {
	for _, c := range []struct{ pattern, file, dir, neither string }{
		{"foo/**", "foo/a foo/a/b", "foo foo/a", "a/foo foobar"},
		{"*/**", "foo/a foo/a/b", "foo foo/a", ""},
		{".*/**", ".a/b", ".a", "a a/.b"},
		{"**", "a a/b", "a a/b", ""},
		{"**/foo/**", "foo/a x/foo/a", "foo x/foo x/foo/a", "x/foobar"},
		{"{foo/**,bar}", "bar foo/a", "bar foo", "x/bar"},
		{"foo/", "", "foo x/foo", "foo/a"},
		{"foo/*/", "", "foo/a", "foo foo/a/b"},
		{"foo/**/", "", "foo foo/a foo/a/b", "a"},
		{"{foo/,bar}", "bar", "foo bar", "x/foo"},
		{"[foo]/", "", "f o [foo] x/[foo]", "foo"},
		{"foo/**/bar", "foo/bar foo/x/bar", "foo/bar", "foo bar"},
	} {
		g, err := glob.Compile(c.pattern)
		require.NoError(t, err)
		require.Equal(t, c.file == "", g.DirOnly(), c.pattern)
		for _, p := range strings.Fields(c.file + " " + c.dir + " " + c.neither) {
			require.Equal(t, slices.Contains(strings.Fields(c.file), p), g.MatchEntry(p, false), "%s on the file %s", c.pattern, p)
			isDir := slices.Contains(strings.Fields(c.dir), p) || slices.Contains(strings.Fields(c.file), p)
			require.Equal(t, isDir, g.MatchEntry(p, true), "%s on the directory %s", c.pattern, p)
		}
	}
}

// randomText returns a pattern or path made from a few pieces, so that patterns
// and paths often match.
func randomText(r *rand.Rand, pieces []string, most int) string {
	var b strings.Builder
	for range 1 + r.IntN(most) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// TestLikeDoublestar compares the results with doublestar's for random
// patterns.
func TestLikeDoublestar(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var paths []string
	for range 150 {
		paths = append(paths, cleanPath(randomText(r, []string{"a", "b", "ab", "/", ".", "ü"}, 7)))
	}
	for range 800 {
		pattern := randomText(r, []string{"a", "b", "/", "*", "**", "/**/", "?", "[ab]", "[a-b]", "{a,b}", "{a*,**/b}", "{,a/}", `\a`, "."}, 6)
		checkLikeDoublestar(t, pattern, paths)
	}
}

func cleanPath(p string) string {
	return strings.TrimPrefix(path.Clean("/x/"+p), "/")
}

// checkLikeDoublestar requires the same results as doublestar's, for patterns
// that need no normalising and whose classes are not also read as plain names.
func checkLikeDoublestar(t *testing.T, pattern string, paths []string) {
	t.Helper()
	g, err := glob.Compile(pattern)
	if err != nil || g.Fault() != nil {
		return
	}
	text := pattern
	if !strings.Contains(text, "/") {
		text = "**/" + text
	}
	for _, p := range paths {
		want, err := doublestar.Match(text, p)
		require.NoError(t, err)
		if want {
			require.True(t, g.Match(p), "%q matches %q", pattern, p)
			for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
				require.True(t, g.MayMatchBelow(dir), "%q: %q is entered for %q", pattern, dir, p)
			}
		} else if !strings.ContainsAny(p, "[]{}") && tidy(text) {
			require.False(t, g.Match(p), "%q matches not %q", pattern, p)
		}
	}
}

// tidy reports whether normalising leaves the expanded pattern unchanged: for
// other patterns we match more than the library.
func tidy(text string) bool {
	return !strings.Contains(text, "{") && !strings.Contains(text, "//") && !strings.HasPrefix(text, "/") &&
		!strings.HasSuffix(text, "/") && !strings.Contains(text, "**/**") && !strings.Contains(text, "***") && !strings.Contains("/"+text+"/", "/./")
}

func TestBracesLikeDoublestar(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var paths []string
	for range 150 {
		paths = append(paths, cleanPath(randomText(r, []string{"a", "b", "c", "/"}, 6)))
	}
	for range 300 {
		pattern := "x/" + randomText(r, []string{"a", "*", "{a,b}", "{a,{b,c}}", "{ab,*c}", "[ab]"}, 4)
		if strings.Contains(pattern, "***") {
			continue // the library does not let the end match nothing
		}
		g, err := glob.Compile(pattern)
		require.NoError(t, err)
		for _, p := range paths {
			want, err := doublestar.Match(pattern, p)
			require.NoError(t, err)
			require.Equal(t, want, g.Match(p), "%q on %q", pattern, p)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"**/*.go", "{a,b}/[c", `a\`, "[id].tsx", "a/../b", "{{x}}", "[^a]{,b}/**"} {
		f.Add(seed, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := glob.Compile(pattern)
		if err != nil {
			return
		}
		if !strings.Contains(pattern, "[") && g.Fault() == nil != doublestar.ValidatePattern(strings.TrimRight(pattern, "/")) && !strings.Contains(pattern, `\/`) && len(strings.TrimRight(pattern, "/")) == len(pattern) {
			t.Fatalf("%q: fault %v disagrees with doublestar", pattern, g.Fault())
		}
		name = cleanPath(name)
		if g.Match(name) {
			for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
				require.True(t, g.MayMatchBelow(dir), "%q enters %q", pattern, dir)
			}
		}
		exact, err := glob.Compile("/" + glob.QuoteMeta(name))
		if err == nil {
			require.True(t, exact.Match(name))
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, pattern := range []string{"**/*.go", "src/**/*_test.go", "src/*/**/ssa/*_test.go", "*.{ts,tsx,js}", "**/[a-c]*/x?.go"} {
		b.Run(strings.ReplaceAll(pattern, "/", "|"), func(b *testing.B) {
			g, err := glob.Compile(pattern)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				g.Match("src/cmd/compile/internal/ssa/rewrite_test.go")
			}
		})
	}
}
