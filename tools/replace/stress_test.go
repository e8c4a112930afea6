package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const writers, rounds = 64, 10

// manyWriters starts servers for one root. Some share a state directory, some
// have a separate one, some have none.
func manyWriters(t *testing.T) (root string, clients []*mcpkittest.Client) {
	t.Helper()
	bin := mcpkittest.Build(t, "./tools/replace")
	root, state := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "shared.txt"), []byte("start\n"), 0o644))
	require.NoError(t, os.Symlink("shared.txt", filepath.Join(root, "link.txt")))
	clients = make([]*mcpkittest.Client, writers)
	for i := range clients {
		args := []string{root, "--state", state}
		switch i % 4 {
		case 2:
			args = []string{root, "--state", t.TempDir()}
		case 3:
			args = []string{root, "--no-state"}
		}
		clients[i] = mcpkittest.Start(t, bin, args...)
	}
	return root, clients
}

// names are the paths under which writers access the file.
var names = []string{"shared.txt", "link.txt"}

// ends checks the file's final content, and that the directory has no leftover
// files.
func ends(t *testing.T, root, content string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "shared.txt"))
	require.NoError(t, err)
	require.Equal(t, content, string(data))
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, entries, len(names), "nothing is left beside the file and its link")
}

// TestManyWritersOfOneVersion: 64 processes replace a file ten times each, and
// always give the latest etag that the test knows. The reported writes form a
// chain from the first to the last content, so no successful write was lost and
// no refused write was made.
func TestManyWritersOfOneVersion(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root, clients := manyWriters(t)
	start := etagOf(t, clients[0].Call("replace", map[string]any{"file_path": "shared.txt", "content": "start\n"}))
	type sent struct{ id, etag, content string }
	out := make([]sent, writers)
	send := func(i, round int, etag string) {
		content := fmt.Sprintf("writer %d, round %d, after %s\n", i, round, etag)
		id := clients[i].Go("tools/call", mcpkittest.CallParams("replace", map[string]any{
			"file_path": names[i%2], "content": content, "etag": etag,
		}))
		out[i] = sent{id, etag, content}
	}
	for i := range clients {
		send(i, 0, start)
	}
	known := start              // latest reported etag
	next := map[string]string{} // from an etag to its successor
	made := map[string]string{} // the content of each etag
	for round := range rounds {
		// While the test reads an answer, the other writers continue.
		for i, c := range clients {
			got, err := mcpkittest.ParseResult(c.Answer(out[i].id).Result)
			require.NoError(t, err)
			if got.IsError {
				require.Contains(t, []string{string(toolerr.Stale), string(toolerr.Locked)}, got.Code, got.Text)
				if got.Code == string(toolerr.Stale) {
					known = etagOf(t, got)
				}
			} else {
				require.NotContains(t, next, out[i].etag, "two have replaced the same version")
				known = etagOf(t, got)
				next[out[i].etag], made[known] = known, out[i].content
			}
			if round+1 < rounds {
				send(i, round+1, known)
			}
		}
	}
	at, steps := start, 0
	for next[at] != "" {
		at = next[at]
		steps++
	}
	require.Positive(t, steps)
	require.Len(t, next, steps, "what was done is one chain")
	ends(t, root, made[at])
	t.Logf("%d of %d writes were done", steps, writers*rounds)
}

// TestManyWritersWithoutAsking: the same with overwrite=true. All writes succeed,
// some only when repeated because they waited too long for the file. The diffs
// form a chain, each starting from the content written before.
func TestManyWritersWithoutAsking(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root, clients := manyWriters(t)
	call := func(writer, round int) map[string]any {
		return map[string]any{
			"file_path": names[writer%2], "content": fmt.Sprintf("writer %d, round %d\n", writer, round), "overwrite": true,
		}
	}
	next := map[string]string{} // from a content to its successor
	for round := range rounds {
		var ids []string
		for i, c := range clients {
			ids = append(ids, c.Go("tools/call", mcpkittest.CallParams("replace", call(i, round))))
		}
		for i, c := range clients {
			got, err := mcpkittest.ParseResult(c.Answer(ids[i]).Result)
			require.NoError(t, err)
			for got.Code == string(toolerr.Locked) { // a slow machine: nothing was written, as the answer says
				got = c.Call("replace", call(i, round))
			}
			require.False(t, got.IsError, got.Text)
			old, now := "", ""
			for line := range strings.Lines(got.Text) {
				if text, ok := strings.CutPrefix(line, "-"); ok && !strings.HasPrefix(line, "---") {
					old = text
				}
				if text, ok := strings.CutPrefix(line, "+"); ok && !strings.HasPrefix(line, "+++") {
					now = text
				}
			}
			require.NotContains(t, next, old, "two have replaced the same version")
			next[old] = now
		}
	}
	at, steps := "start\n", 0
	for next[at] != "" {
		at = next[at]
		steps++
	}
	require.Equal(t, writers*rounds, steps)
	ends(t, root, at)
}

func etagOf(t *testing.T, got mcpkittest.Result) string {
	t.Helper()
	raw, err := json.Marshal(got.Meta)
	require.NoError(t, err)
	var m meta
	require.NoError(t, json.Unmarshal(raw, &m))
	require.NotEmpty(t, m.Etag, got.Text)
	return m.Etag
}
