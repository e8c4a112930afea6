//go:build oracle

package textdiff_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// TestPatchesApply: git and patch turn the old text into the new text.
func TestPatchesApply(t *testing.T) {
	git, patch := oracle.Path(t, "git"), oracle.Path(t, "patch")
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 150 {
		old := randomText(rng)
		name := []string{"x.txt", "two words.txt", "quo\"te\\.txt", "日本.txt"}[i%4]
		changes := randomChanges(rng, old)
		new := apply(old, changes)
		if old == new || old == "" || new == "" {
			continue // diffs represent an empty file as a created or deleted file
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

// TestNotLongerThanGit: for pairs of files in the same directory of this
// repository, and for versions with random changes, diffs are no longer than
// git's.
func TestNotLongerThanGit(t *testing.T) {
	git := oracle.Path(t, "git")
	var ours, theirs, pairs int
	compare := func(old, new string) {
		out, _ := exec.Command(git, "diff", "--no-index", "--numstat", old, new).Output() //nolint:errcheck // exit code 1 means that they differ
		var added, removed int
		_, err := fmt.Sscan(string(out), &added, &removed)
		require.NoError(t, err, "%s", out)
		d := unified(read(t, old), read(t, new), textdiff.Options{})
		ours, theirs, pairs = ours+d.Added+d.Removed, theirs+added+removed, pairs+1
		require.LessOrEqual(t, float64(d.Added+d.Removed), 1.02*float64(added+removed)+4, "%s and %s", old, new)
	}
	rng := rand.New(rand.NewPCG(13, 14))
	files, err := filepath.Glob("../../*/*/*.go")
	require.NoError(t, err)
	for i := 1; i < len(files); i += 4 {
		compare(files[i-1], files[i])
		lines := strings.SplitAfter(read(t, files[i]), "\n")
		for range 1 + rng.IntN(20) {
			if len(lines) == 0 { // a short file whose lines were all removed
				break
			}
			at := rng.IntN(len(lines))
			from := rng.IntN(len(lines))
			some := slices.Clone(lines[from:min(from+rng.IntN(6), len(lines))])
			lines = slices.Replace(lines, at, min(at+rng.IntN(6), len(lines)), some...)
		}
		changed := filepath.Join(t.TempDir(), "changed")
		require.NoError(t, os.WriteFile(changed, []byte(strings.Join(lines, "")+"\n// end\n"), 0o600))
		compare(files[i], changed)
	}
	t.Logf("%d pairs: %d lines added or removed, git %d", pairs, ours, theirs)
	require.Greater(t, pairs, 100)
	require.LessOrEqual(t, float64(ours), 1.005*float64(theirs))
}

func read(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
