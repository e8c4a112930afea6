//go:build oracle

package main

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

// TestDiffsApply: git apply turns the original into the new file with the diff
// of an answer.
func TestDiffsApply(t *testing.T) {
	git := oracle.Path(t, "git")
	d := newDesk(t)
	rng := rand.New(rand.NewPCG(21, 22))
	letters := []string{"a", "b", "é", " ", "\t", "\\", "-", "+", "@@"}
	applied := 0
	for round := range 250 {
		name := fmt.Sprintf("%d.txt", round)
		file := filepath.Join(d.root, name)
		ending := []string{"\n", "\r\n"}[rng.IntN(2)]
		text := sample(rng, letters)
		before := strings.ReplaceAll(text, "\n", ending)
		require.NoError(t, os.WriteFile(file, []byte(before), 0o644))
		lines := strings.SplitAfter(text, "\n")
		for range 1 + rng.IntN(4) {
			lines[rng.IntN(len(lines))] = sample(rng, letters)
		}
		res := d.call(args{"file_path": name, "content": strings.Join(lines, "")})
		require.False(t, res.IsError, res.Text)
		at := strings.Index(res.Text, "\n@@ ")
		if at < 0 || strings.Contains(res.Text, "more diff lines") || !strings.Contains(before, "\n") {
			continue
		}
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(before), 0o644))
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader("--- a/"+name+"\n+++ b/"+name+"\n"+res.Text[at+1:])
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, res.Text)
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(after), string(got))
		applied++
	}
	require.Greater(t, applied, 75)
}
