//go:build oracle

package walk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// randomBrackets returns a pattern made from pieces of bracket expressions.
func randomBrackets(r *rand.Rand) string {
	pieces := []string{
		"[", "[", "[", "]", "]", "]", "[!", "[^", "[]", "[:", ":]", "[[:", ":]]", "[::]", "[[::]", "[:alpha:]", "[:digit:]", "[:upper:]", "[:nope:]",
		"[=a=]", "[.a.]", "a", "b", "-", ":", "!", "^", `\]`, `\[`, `\`, "a-c", "*", "?", "A", "1",
	}
	var b strings.Builder
	for range 1 + r.IntN(7) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// TestBracketsAsGit compares bracket expressions with git check-ignore: all
// patterns in one file, each for a separate directory.
func TestBracketsAsGit(t *testing.T) {
	git, dir := oracle.Path(t, "git"), t.TempDir()
	names := []string{"a", "b", "c", "A", "1", ":", "[", "]", "-", "!", "^", "=", ".a", "ab", "a]", "[a]", ":]", "[:", "b]", "nope", `\`}
	r := rand.New(rand.NewPCG(7, 8))
	var rules, paths strings.Builder
	patterns := []string{"[[::]ab]", "[[:]ab]", "[[:]]", "[[::]]", "[[:a:]b]", "[[:", "[[:]", "[[:-a]", "[![::]]"}
	for len(patterns) < 4000 {
		patterns = append(patterns, randomBrackets(r))
	}
	for i, pattern := range patterns {
		fmt.Fprintf(&rules, "/%d/%s\n", i, pattern)
		for _, name := range names {
			fmt.Fprintf(&paths, "%d/%s\x00", i, name)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "core.excludesFile", "/dev/null"}} {
		require.NoError(t, exec.Command(git, append([]string{"-C", dir}, args...)...).Run())
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules.String()), 0o600))
	cmd := exec.Command(git, "-C", dir, "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Stdin = strings.NewReader(paths.String())
	out, err := cmd.Output()
	require.NoError(t, err)
	byGit := map[string]bool{}
	for path := range strings.SplitSeq(string(out), "\x00") {
		byGit[path] = true
	}
	require.Greater(t, len(byGit), 1000)
	set, err := parseRules([]byte(rules.String()), gitDialect, false)
	require.NoError(t, err)
	for i, pattern := range patterns {
		for _, name := range names {
			path := fmt.Sprintf("%d/%s", i, name)
			require.Equal(t, byGit[path], verdictOn(set, path, false) == ignored, "%s on %s", pattern, name)
		}
	}
}
