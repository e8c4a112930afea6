//go:build oracle

package textdiff_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/textdiff"
)

// TestPatchesApply: git and patch make the new text of the old one.
func TestPatchesApply(t *testing.T) {
	git, patch := oracle.Path(t, "git"), oracle.Path(t, "patch")
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 150 {
		old := randomText(rng)
		name := []string{"x.txt", "two words.txt", "quo\"te\\.txt", "日本.txt"}[i%4]
		changes := randomChanges(rng, old)
		new := apply(old, changes)
		if old == new || old == "" || new == "" {
			continue // an empty file is one that is made or deleted
		}
		for _, d := range []textdiff.Diff{
			textdiff.Unified([]byte(old), changes, textdiff.Options{Old: "a/" + name, New: "b/" + name}),
			unified(old, new, textdiff.Options{Old: "a/" + name, New: "b/" + name}),
		} {
			for _, args := range [][]string{
				{git, "apply", "--whitespace=nowarn", "-"},
				{patch, "--binary", "-s", "-p1", "--fuzz=0"},
			} {
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(old), 0o600))
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir, cmd.Stdin = dir, strings.NewReader(d.Text)
				cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s\n%s\n%q", out, d.Text, old)
				got, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, new, string(got), d.Text)
			}
		}
	}
}
