package walk

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// verdictOn returns one ignore file's verdict on a path relative to its
// directory.
func verdictOn(s *ruleSet, path string, dir bool) verdict {
	if s == nil {
		return noRule
	}
	above, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		above, name = path[:i], path[i+1:]
	}
	l := s.rulesFor(above)
	return s.verdictOn(name, dir, &l)
}

// hostileTime is how long all rules and paths of one hostile pattern may take:
// they take milliseconds, and a backtracking matcher takes years.
const hostileTime = time.Minute

// Patterns that take a backtracking matcher exponential time or memory are
// matched in time, and correctly.
func TestHostilePatterns(t *testing.T) {
	long := strings.Repeat("a", 250)
	path := strings.Repeat("a/", 1000) + long
	longer := strings.Repeat("a", 2000) + "b"
	for _, c := range []struct{ pattern, matches string }{
		{strings.Repeat("**/", 1300) + "b", "b"},
		{strings.Repeat("**/a/", 800) + "b", ""},
		{strings.Repeat("a*", 2000) + "b", longer},
		{strings.Repeat("*a", 2000) + "b", longer},
		{"/" + strings.Repeat("**/*a*a*a*b/", 300), ""},
		{strings.Repeat("?*", 2000), longer},
		{strings.Repeat("[a-z]*", 600) + "b", longer},
		{strings.Repeat("{a,b}", 800), ""},
		{strings.Repeat("{", 4000), ""},
		{strings.Repeat("{a,", 1000) + strings.Repeat("}", 1000), ""},
		{"{" + strings.Repeat("a,", 2000) + "}", ""},
		{strings.Repeat("{a,b}", 8) + strings.Repeat("[", 4000), ""},
		{strings.Repeat("[!", 2000), ""},
		{strings.Repeat("\\", 4001), ""},
		{strings.Repeat("x", 1<<20), ""},
	} {
		wrong := make(chan map[string]bool, 1)
		go func() {
			names := map[string]bool{}
			for _, d := range []dialect{gitDialect, rgDialect} {
				for _, fold := range []bool{false, true} {
					s, _ := parseRules([]byte(c.pattern+"\n"), d, fold)
					for _, name := range []string{path, long, longer, "a", "b"} {
						if v := verdictOn(s, name, true); (v == ignored) != (name == c.matches) || v == reincluded {
							names[name] = true
						}
					}
				}
			}
			wrong <- names
		}()
		select {
		case names := <-wrong:
			require.Empty(t, names, "wrong verdicts of %.40s…", c.pattern)
		case <-time.After(hostileTime):
			require.Failf(t, "too slow", "%.40s… is not matched within %v", c.pattern, hostileTime)
		}
	}
}

// The lines of one file share the limit for expanded braces: a mebibyte of
// lines could expand to gigabytes.
func TestBracesAreBounded(t *testing.T) {
	line := strings.Repeat("{a,b}", 8)
	for _, text := range []string{
		strings.Repeat(line+strings.Repeat("x", 4000)+"\n", 250),
		strings.Repeat(line+"\n", 25_000),
		strings.Repeat(strings.Repeat("{a}", 1300)+"\n", 250),
		line + strings.Repeat("[", 4000),
	} {
		before := memory()
		s, err := parseRules([]byte("a\n"+text), rgDialect, false)
		require.Less(t, memory()-before, uint64(200<<20))
		if len(text) > maxLine {
			require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
			require.Nil(t, s)
		}
	}
	s, err := parseRules([]byte(strings.Repeat(line+"\n", 100)), rgDialect, false)
	require.NoError(t, err)
	require.Equal(t, ignored, verdictOn(s, "x/abababba", false))
}

// memory returns the number of bytes allocated so far.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestManyRules(t *testing.T) {
	var b strings.Builder
	for range 20_000 {
		b.WriteString("dup/\n!dup\n*.ext/\n")
	}
	s, err := parseRules([]byte(b.String()), gitDialect, false)
	require.NoError(t, err)
	require.Len(t, s.names.byName["dup"], 1, "a later rule for all overrides the earlier ones")
	require.Len(t, s.names.bySuffix[".ext"], 1)
	require.Equal(t, reincluded, verdictOn(s, "dup", true))
	require.Equal(t, ignored, verdictOn(s, "a/b.ext", true))
	require.Equal(t, noRule, verdictOn(s, "a/b.ext", false))
}

func TestOrderOfRulesAcrossIndexes(t *testing.T) {
	s, err := parseRules([]byte("*.go\n!a.go\n/d/a.go\n!/d/a*\nd/**/a.g?\n!x/\nx"), gitDialect, false)
	require.NoError(t, err)
	for path, want := range map[string]verdict{
		"b.go": ignored, "a.go": reincluded, "d/a.go": ignored, "d/ab.go": reincluded, "d/e/a.go": ignored, "e/a.go": reincluded, "x": ignored, "d/x": ignored, "y": noRule,
	} {
		require.Equal(t, want, verdictOn(s, path, false), path)
	}
}

// TestClassWithoutName: "[::]" is an unknown class, so that the rule can match
// nothing, as in git; "[:]" is a set with a colon.
func TestClassWithoutName(t *testing.T) {
	for rule, want := range map[string]verdict{"[[::]ab]": noRule, "[[::]a-z]": noRule, "[[:]a": noRule, "[[:a]": ignored, "[[:-a]": ignored} {
		s, err := parseRules([]byte(rule), gitDialect, false)
		require.NoError(t, err)
		require.Equal(t, want, verdictOn(s, "a", false), rule)
	}
}

func FuzzRules(f *testing.F) {
	f.Add("*.log\n!/a/**/b/\n[a-z]?\\*\n", "a/x/b", false)
	f.Add("{a,{b,c}}/**", "c/d", true)
	f.Add("**/**/x\n", "x", true)
	f.Add("[[::]ab]\n[[:]\n[[:a]\n", "a", false)
	f.Add("[[:alpha:]\n[]-]\n[\\]]\n", "]", false)
	f.Fuzz(func(t *testing.T, content, path string, fold bool) {
		for _, d := range []dialect{gitDialect, rgDialect} {
			s, err := parseRules([]byte(content), d, fold)
			if err != nil { // of its braces
				require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
				continue
			}
			verdictOn(s, path, true)
			asFile := verdictOn(s, path, false)
			// A last rule for the name itself decides.
			if path != "" && !strings.ContainsAny(path, "/\n\r\\ \t") && len(path) < 100 && plainPattern(path) {
				s, err = parseRules([]byte(content+"\n"+path+"\n"), d, fold)
				require.NoError(t, err)
				if got := verdictOn(s, path, false); got != ignored {
					t.Errorf("%q after %q: %v, before %v", path, content, got, asFile)
				}
			}
		}
	})
}

// plainPattern reports whether a name, read as a pattern, matches only itself.
func plainPattern(name string) bool {
	for _, c := range []byte(name) {
		if c >= 0x80 || strings.IndexByte("*?[]{}!#", c) >= 0 || c < ' ' {
			return false
		}
	}
	return true
}

func FuzzGitConfig(f *testing.F) {
	f.Add("[core]\n\texcludesFile = \"a b\" ; c\n")
	f.Add("[core] ignorecase\nexcludesfile = a\\\nb\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := gitConfig{home: "/home/u"}
		c.parse([]byte(text), "/dir", nil)
		// A value written as git-config(1) says is read back unchanged.
		if strings.ContainsAny(text, "\x00\r") {
			return
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace("/" + text)
		c = gitConfig{}
		c.parse([]byte("[core]\n\tignoreCase = true\n\texcludesFile = \""+quoted+"\"\n"), "/dir", nil)
		require.Equal(t, "/"+text, c.excludesFile)
		require.True(t, c.ignoreCase)
	})
}

func TestGitConfig(t *testing.T) {
	for text, want := range map[string]gitConfig{
		"[core]\nexcludesfile=a":                                 {excludesFile: "a"},
		"[core]\n\tExcludesFile = \"a # b\" # c\n":               {excludesFile: "a # b"},
		"[core]excludesfile = a\\\n  b ; c":                      {excludesFile: "a  b"},
		"[core]\nexcludesfile = ~/x\n[other]\nexcludesfile = y":  {excludesFile: "/home/u/x"},
		"[core]\nexcludesfile = a\\\\b\\\"c":                     {excludesFile: `a\b"c`},
		"[core]\nignorecase\n":                                   {ignoreCase: true},
		"[core]\nignorecase = yes\n[core]\nignoreCase = false\n": {},
		"[core \"sub\"]\nignorecase\n":                           {},
		"[core":                                                  {},
	} {
		c := gitConfig{home: "/home/u"}
		c.parse([]byte(text), "/dir", nil)
		want.home = c.home
		require.Equal(t, want, c, text)
	}
}
