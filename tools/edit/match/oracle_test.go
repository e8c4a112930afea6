//go:build oracle

package match_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// TestDiffsApply: git and patch turn the original into the edited text; for
// encodings other than UTF-8, the decoded text.
func TestDiffsApply(t *testing.T) {
	git, patch := oracle.Path(t, "git"), oracle.Path(t, "patch")
	rng := rand.New(rand.NewPCG(21, 22))
	for done := 0; done < 150; {
		s := newSample(rng)
		f, err := splice.Open(t.Context(), s.raw)
		if err != nil || s.old == "" || f.EOL != '\n' {
			continue
		}
		plan, err := match.Find(t.Context(), f, []match.Edit{{Old: s.old, New: s.new, All: rng.IntN(2) == 0}}, match.Options{})
		if err != nil {
			continue
		}
		result, err := f.Apply(t.Context(), plan.Changes)
		if err != nil || result.Size() == f.BOM {
			continue
		}
		want := result.Bytes()
		if f.Encoding != textfile.UTF8 {
			want = []byte(f.Encoding.Decode(want[f.BOM:]))
		}
		d := result.Diff(textdiff.Options{Old: "a/file", New: "b/file"})
		for _, args := range [][]string{
			{git, "apply", "--whitespace=nowarn", "-"},
			{patch, "--binary", "-s", "-p1", "--fuzz=0"},
		} {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), f.Text, 0o600))
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(d.Text)
			cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", out, d.Text)
			got, err := os.ReadFile(filepath.Join(dir, "file"))
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), d.Text)
		}
		done++
	}
}
