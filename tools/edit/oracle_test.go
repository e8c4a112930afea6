//go:build oracle

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// TestDiffsApply: git apply and patch turn the original into the new file by
// the diff of an answer. EDIT_DIFFS sets the number of edits.
func TestDiffsApply(t *testing.T) {
	git, patch := oracle.Path(t, "git"), oracle.Path(t, "patch")
	f := newFixture(t)
	rng := rand.New(rand.NewPCG(uint64(count(t, "EDIT_SEED", 1)), 13))
	applied, cut := 0, 0
	for i := range count(t, "EDIT_DIFFS", 150) {
		name := fmt.Sprintf("f%d.txt", i)
		old := randomText(rng)
		f.write(name, old)
		args := map[string]any{"file_path": name, "edits": randomEdits(rng, string(old))}
		if rng.IntN(10) == 0 {
			require.NoError(t, os.Remove(f.file(name)))
			old = nil
			args = map[string]any{"file_path": name, "old_string": "", "new_string": string(randomText(rng)) + "x"}
		}
		res := f.call(args)
		if res.IsError {
			require.Contains(t, []string{"NO_CHANGE", "NOT_UNIQUE", "CONFLICT"}, string(res.Code), res.Text)
			continue
		}
		at := strings.Index(res.Text, "\n@@ ")
		require.Positive(t, at, res.Text)
		diff, _, isCut := strings.Cut(res.Text[at+1:], "\nnote: diff cut")
		diff = "--- " + map[bool]string{true: "a/" + name, false: "/dev/null"}[old != nil] + "\n+++ b/" + name + "\n" + diff
		if isCut {
			cut++
			continue
		}
		want := f.read(name)
		for _, apply := range [][]string{{git, "apply", "--whitespace=nowarn", "-"}, {patch, "-p1", "--binary", "--quiet"}} {
			dir := t.TempDir()
			if old != nil {
				require.NoError(t, os.WriteFile(dir+"/"+name, old, 0o644))
			}
			cmd := exec.Command(apply[0], apply[1:]...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
			cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%v\n%s\n%s", apply, out, diff)
			got, err := os.ReadFile(dir + "/" + name)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), "%v\n%s", apply, diff)
		}
		applied++
	}
	t.Logf("%d diffs applied twice, %d were cut", applied, cut)
	require.Greater(t, applied, 20)
}

// randomText returns lines of a few words, with one of three endings, with or
// without a final one.
func randomText(rng *rand.Rand) []byte {
	words := strings.Fields("a b if x { } return naïve 日本 -- ++ @@ --- +++ \\ end")
	endings := [][]string{{"\n"}, {"\r\n"}, {"\n", "\r\n"}}[rng.IntN(3)]
	var text bytes.Buffer
	for i := range 1 + rng.IntN(60) {
		fmt.Fprintf(&text, "%d", i*rng.IntN(2))
		for range rng.IntN(5) {
			text.WriteString(" " + words[rng.IntN(len(words))])
		}
		text.WriteString(endings[rng.IntN(len(endings))])
	}
	if rng.IntN(3) == 0 {
		return bytes.TrimRight(text.Bytes(), "\r\n")
	}
	return text.Bytes()
}

// randomEdits returns edits of runs of lines of the text.
func randomEdits(rng *rand.Rand, text string) []map[string]any {
	lines := strings.SplitAfter(text, "\n")
	var edits []map[string]any
	for at := rng.IntN(3); at < len(lines) && len(edits) < 4; at += 2 + rng.IntN(20) {
		n := min(1+rng.IntN(4), len(lines)-at)
		old := strings.Join(lines[at:at+n], "")
		if old == "" {
			continue
		}
		newText := []string{"", "new\n", old + "more\n", "two\nlines", strings.ToUpper(old)}[rng.IntN(5)]
		edits = append(edits, map[string]any{"old_string": old, "new_string": newText, "replace_all": rng.IntN(4) == 0})
		at += n
	}
	if edits == nil {
		edits = append(edits, map[string]any{"old_string": lines[0], "new_string": "first\n"})
	}
	return edits
}
