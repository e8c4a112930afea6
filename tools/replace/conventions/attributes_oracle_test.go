//go:build oracle

package conventions_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/tools/replace/conventions"
)

// TestAttributesLikeGit compares random attribute files with git check-attr.
func TestAttributesLikeGit(t *testing.T) {
	git := oracle.Path(t, "git")
	rng := rand.New(rand.NewPCG(8, 8))
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	parts := []string{"a", "b", "*", "**", "?", "[ab]", "[!a]", "[^b]", "/", "/", ".c", `\*`, "{a,b}", "-"}
	words := []string{"eol=crlf", "eol=lf", "-text", "text", "!eol", "!text", "binary", "text=auto", "-eol"}
	names := []string{"a", "b", "a.c", "b.c", "ab.c", "a/a", "a/b.c", "b/a/b.c", "a/b/a/a.c", "*", "a/*", "-a", "{a,b}", "b/ab"}
	said := 0
	for range 150 {
		lines := func() string {
			var text strings.Builder
			for range 1 + rng.IntN(4) {
				pattern := ""
				for range 1 + rng.IntN(5) {
					pattern += pick(parts)
				}
				fmt.Fprintf(&text, "%s %s %s\n", pattern, pick(words), pick(words))
			}
			return text.String()
		}
		files := map[string]string{
			"root/.gitattributes": lines(), "root/a/.gitattributes": lines(), "root/.git/info/attributes": lines(),
			"root/.git/HEAD": "ref: refs/heads/main\n", "root/.git/objects/x": "", "root/.git/refs/x": "",
			"root/.git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
		}
		root := t.TempDir()
		ask := treeIn(t, root, files)
		for _, name := range names {
			cmd := exec.Command(git, "check-attr", "eol", "text", "--", name)
			cmd.Dir = filepath.Join(root, "root")
			cmd.Env = []string{"HOME=" + root, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1"}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			want := conventions.Settings{}
			if !strings.Contains(string(out), ": text: unset\n") {
				switch {
				case strings.Contains(string(out), ": eol: crlf\n"):
					want.Ending = "\r\n"
				case strings.Contains(string(out), ": eol: lf\n"):
					want.Ending = "\n"
				}
			}
			if want.Ending != "" {
				said++
			}
			require.Equal(t, want.Ending, ask(name).Ending, "%s\n%s\nfiles %q", name, out, files)
		}
	}
	require.Greater(t, said, 100, "git says something, too")
}
