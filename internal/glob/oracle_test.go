//go:build oracle

package glob_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/glob"
)

// bashExpand is a bash script that reads one pattern a line and prints its
// expansion.
const bashExpand = `shopt -s globstar dotglob nullglob
while IFS= read -r pattern; do
	eval "set -- $pattern"
	printf '%s\n' "$@" =
done`

// TestLikeBash compares the results with bash's for random patterns and trees.
// It omits these known differences:
//
//   - a pattern that is also a plain name matches that name as well: names with
//     brackets and braces may be found in addition;
//   - a pattern with an unclosed bracket or brace is only a plain name, and an
//     error says so;
//   - braces within a class are members of the class; bash expands them first;
//   - a class that contains a slash is not a class for either, but bash then
//     still reads the other classes of the pattern;
//   - "{a}" matches "a" and "{a}"; for bash it is only a name;
//   - "[[:upper:]]" and other named classes contain only ASCII, in every locale;
//   - "[[=a=]]" matches "a"; bash 5.2 matches other names.
func TestLikeBash(t *testing.T) {
	bash := oracle.Path(t, "bash")
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"a", "b", "ab", "A", "aB", ".a", "1", "a-b", "ü", "[", "]", "[a]", "a]", "!", "^", ":", "[:", "_"}
	pieces := []string{
		"a", "b", "A", "*", "**", "?", "/", "/**/", "**/", "/**", "*/", ".*", "[ab]", "[a-b]", "[^a]", "[!a]", "[]]", "[]a]", "[!]a]", "[[]", "[[]a]",
		"[[:upper:]]", "[[:lower:][:digit:]]", "[![:alpha:]]", "[[:punct:]b]", "[[:nope:]a]", "[[::]ab]", "[[:]", "[a[:digit:]-]", "[-a]", "[a-]", "[b-a]", "[[.a.]b]",
		"[[.a.]-b]", `[\]a]`, `[\a]`, "[:]", "[:a:]", "[^]]", "{a,b}", "{a*,b/**}", "{,a}", "{a,**/b}", `\a`, `\*`, "ü", "[ü]", "1",
	}
	for range 12 {
		root := t.TempDir()
		for range 40 {
			dir := root
			for range r.IntN(3) {
				dir = filepath.Join(dir, names[r.IntN(len(names))])
			}
			if os.MkdirAll(dir, 0o755) == nil && r.IntN(4) > 0 {
				_ = os.WriteFile(filepath.Join(dir, names[r.IntN(len(names))]), nil, 0o600) // the name may be a directory
			}
		}
		isDir := map[string]bool{}
		require.NoError(t, filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if rel := strings.TrimPrefix(name[len(root):], "/"); rel != "" {
				isDir[rel] = e.IsDir()
			}
			return err
		}))
		var patterns []string
		for len(patterns) < 1500 {
			if p := "./" + randomText(r, pieces, 4); !strings.Contains(p, "..") {
				patterns = append(patterns, p)
			}
		}
		for i, want := range bashExpansions(t, bash, root, patterns) {
			compareWithBash(t, patterns[i], isDir, want)
		}
	}
}

func bashExpansions(t *testing.T, bash, root string, patterns []string) [][]string {
	t.Helper()
	cmd := exec.Command(bash, "--norc", "-c", bashExpand)
	cmd.Dir, cmd.Env = root, []string{"LC_ALL=C.UTF-8"}
	cmd.Stdin = strings.NewReader(strings.Join(patterns, "\n") + "\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	var all [][]string
	for record := range strings.SplitSeq("\n"+strings.TrimSuffix(string(out), "\n=\n"), "\n=") {
		all = append(all, strings.Fields(record))
	}
	require.Equal(t, len(patterns), len(all))
	return all
}

func compareWithBash(t *testing.T, pattern string, isDir map[string]bool, words []string) {
	t.Helper()
	g, err := glob.Compile(pattern)
	if err != nil || g.Fault() != nil {
		return
	}
	want := map[string]bool{}
	for _, word := range words {
		name := filepath.Clean(word)
		if dir, exists := isDir[name]; exists && (dir || !strings.HasSuffix(word, "/")) {
			want[name] = true
		}
	}
	for name, dir := range isDir {
		got := g.MatchEntry(name, dir)
		if got && !want[name] && strings.ContainsAny(name, "[]{}") {
			continue // matched as a plain name
		}
		if strings.Contains(pattern, "[:") && strings.Contains(name, "ü") {
			continue
		}
		require.Equal(t, want[name], got, "%s on %s (directory: %v): bash finds %v", pattern, name, dir, words)
	}
}
