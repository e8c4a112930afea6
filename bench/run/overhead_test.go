//go:build unix

package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// envelope bounds the bytes of a result besides the content and what each line
// or file adds: the JSON around the text, the header line, the metadata.
const envelope = 150

// encoded returns the bytes of a text inside a JSON string.
func encoded(t *testing.T, text string) int {
	t.Helper()
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(text))
	return out.Len() - len(`""`+"\n")
}

// session starts one of our servers over a copy of Go's net/http sources. It
// returns a function that makes one call and returns the size of the result
// and its text.
func session(t *testing.T, tool, dir string) func(arguments string) (size int, text string) {
	t.Helper()
	s, err := startStdio([]string{mcpkittest.Build(t, "./tools/"+tool), "--root", dir})
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = s.stop() })
	require.NoError(t, s.handshake())
	id := 0
	return func(arguments string) (int, string) {
		id++
		answer, err := s.roundTrip(id, "tools/call", callOf(tool, arguments))
		require.NoError(t, err)
		raw, err := resultOf(answer)
		require.NoError(t, err)
		var result struct{ Content []struct{ Text string } }
		require.NoError(t, json.Unmarshal(raw, &result))
		require.Len(t, result.Content, 1)
		return len(raw), result.Content[0].Text
	}
}

// Any 50 lines of code cost their own bytes, the line numbers and the envelope.
// TestSizes holds the limit for one window; this test measures all of them.
func TestViewAddsLineNumbersOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, corpus(dir))
	t.Setenv("MCP_STATE_DIR", t.TempDir())
	data, err := os.ReadFile(filepath.Join(dir, "server.go"))
	require.NoError(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	view := session(t, "view", dir)
	const window = 50
	for first := 1; first+window-1 < len(lines); first += 7 {
		size, text := view(`{"file_path":"server.go","limit":50,"offset":` + strconv.Itoa(first) + `}`)
		code := strings.Join(lines[first-1:first-1+window], "")
		numbers := window * (len(strconv.Itoa(first+window-1)) + len(`\t`))
		require.LessOrEqual(t, size, encoded(t, code)+numbers+envelope, "offset %d", first)
		_, body, _ := strings.Cut(text, "\n")
		for i, line := range strings.SplitAfter(strings.TrimSuffix(body, "\n"), "\n") {
			_, shown, _ := strings.Cut(line, "\t")
			require.Equal(t, strings.TrimSuffix(lines[first-1+i], "\n"), strings.TrimSuffix(shown, "\n"))
		}
	}
}

// The lines that grep finds cost their own bytes, each its number, each file
// its path, and the envelope, where they are too many to get context.
func TestGrepAddsPathsAndNumbersOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, corpus(dir))
	grep := session(t, "grep", dir)
	for _, pattern := range []string{`func .*ServeHTTP\(`, `\) ServeHTTP\(`, `func .*RoundTrip\(`, `func .*Close\(\)`, `^type .* interface`} {
		arguments, err := json.Marshal(map[string]any{"pattern": pattern, "head_limit": 0, "max_per_file": 1000})
		require.NoError(t, err)
		size, _ := grep(string(arguments))
		content, added := found(t, dir, pattern)
		t.Logf("%s: %d bytes, the lines alone %d, numbers and paths %d", pattern, size, content, added)
		require.Greater(t, size, content)
		require.LessOrEqual(t, size, content+added+envelope, pattern)
	}
}

// found returns the bytes of all lines below dir that match a pattern, and those
// of their numbers and their files' paths, as grep shows them.
func found(t *testing.T, dir, pattern string) (lines, added int) {
	t.Helper()
	matcher := regexp.MustCompile(pattern)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		before := lines
		for i, line := range strings.Split(string(data), "\n") {
			if matcher.MatchString(line) && !strings.Contains(string(data), "\x00") {
				lines += encoded(t, line+"\n")
				added += len("  " + strconv.Itoa(i+1) + ": ")
			}
		}
		if name, _ := filepath.Rel(dir, path); lines > before {
			added += encoded(t, filepath.ToSlash(name)+"\n")
		}
		return err
	}))
	return lines, added
}
