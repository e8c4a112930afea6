package glob

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"
)

// FuzzFastPath: results obtained without doublestar agree with doublestar's,
// and doublestar accepts every pattern passed to it.
func FuzzFastPath(f *testing.F) {
	for _, seed := range [][2]string{
		{"src/**/*_test.go", "src/a/b_test.go"}, {"**/*.go", "a.go"}, {"a/b/**", "a/b"}, {"a/b", "a/b"}, {"a/**/b", "a/b"}, {"{a/**,*/b}", "a/b"},
		{"a/[[:upper:]]]*", "a/B]"}, {"*/**", "a"}, {`\a/\**`, "a/*b"}, {"[!-a]", "5"}, {"a/*", "a"}, {"[]]/**/x*", "]/xx"}, {"a**b/***", "ab/c"}, {"[/{]", "[/{]"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := Compile(pattern)
		name = strings.TrimPrefix(path.Clean("/"+name), "/")
		if err != nil || name == "" || !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return // doublestar does not distinguish bytes that are not UTF-8
		}
		for _, a := range g.alts {
			ok, err := doublestar.Match(a.text, name)
			require.NoError(t, err, "%q for %q", a.text, pattern)
			require.Equal(t, ok && !a.dirOnly, a.match(name, false), "%q (%q) on the file %q", a.text, pattern, name)
			if a.ownDir != "" && !ok {
				ok, err = doublestar.Match(a.ownDir, name)
				require.NoError(t, err, "%q for %q", a.ownDir, pattern)
			}
			require.Equal(t, ok, a.match(name, true), "%q (%q) on the directory %q", a.text, pattern, name)
		}
	})
}
