package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// encodedTexts are texts with a word whose characters are specific to the
// encoding.
var encodedTexts = []struct {
	encoding   textfile.Encoding
	text, word string
}{
	{textfile.Latin1, "Le garçon a mangé la crème brûlée près du château\n", "brûlée"},
	{textfile.Windows1252, "“Où est le garçon” – il a mangé… près du château\n", "château"},
	{textfile.ShiftJIS, "これは日本語のテキストです。検索できるはずです。\n", "日本語"},
	{textfile.GBK, "这是一个中文文件，应该可以搜索到里面的文字。\n", "中文文件"},
	{textfile.UTF16LE, "plain words über alles\r\nand more\r\n", "über"},
	{textfile.UTF16BE, "plain words über alles\r\nand more\r\n", "über"},
}

// TestEncodings searches small and large files that are not UTF-8 and have no
// byte order mark, with and without the index: each is found by its word and by
// a class, and named with the encoding that view shows.
func TestEncodings(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root := t.TempDir()
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	view := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/view"), "--no-state", root)
	for i, c := range encodedTexts {
		for _, size := range []int{1, 20_000} { // the second is read in windows
			name := fmt.Sprintf("f%d-%d.txt", i, size)
			raw, err := c.encoding.Encode(strings.Repeat("first line\nfunc f()\n", size) + c.text)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(root, name), raw, 0o600))
			for range 2 {
				got := client.Call("grep", map[string]any{"pattern": c.word, "glob": name, "-C": 0})
				require.Contains(t, got.Text, "1 match in 1 file (searched 1; 1 file searched in a guessed encoding: "+name+" "+string(c.encoding)+")", name)
				require.Contains(t, got.Text, fmt.Sprintf("  %d: %s\n", 2*size+1, strings.SplitN(strings.TrimSuffix(c.text, "\n"), "\r", 2)[0]), name)
				require.Contains(t, got.Text, "decoded from "+string(c.encoding)+" (a guess)", name)
				got = client.Call("grep", map[string]any{"pattern": `\w*` + string([]rune(c.word)[:2]) + `\w+`, "path": name, "-o": true, "output_mode": "count"})
				require.Contains(t, got.Text, "1 match in 1 file", name)
				got = client.Call("grep", map[string]any{"pattern": "func f", "glob": name, "output_mode": "count"})
				require.Contains(t, got.Text, fmt.Sprintf("%d matches in 1 file (searched 1)", size)[:4], name)
				require.NotContains(t, got.Text, "guessed", name)
			}
			header := view.Call("view", map[string]any{"file_path": name, "limit": 1}).Text
			require.Regexp(t, regexp.MustCompile(`\b`+string(c.encoding)+`\b`), strings.SplitN(header, "\n", 2)[0], name)
		}
	}
	// A file in no known encoding is searched undecoded.
	require.NoError(t, os.WriteFile(filepath.Join(root, "damaged"), []byte("häßliche Wörter für später \xff end\n"), 0o600))
	got := client.Call("grep", map[string]any{"pattern": "später", "path": "damaged", "-C": 0})
	require.Equal(t, "1 match in 1 file (searched 1)\ndamaged\n  1: häßliche Wörter für später \uFFFD end\n", got.Text)
}
