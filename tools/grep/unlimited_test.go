package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestUnlimitedInOneFile: head_limit 0 returns as many lines of one file as
// fit, and the offset that continues; the pages together have each match once.
// Keeps fixed: only one line with the number of matches.
func TestUnlimitedInOneFile(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const lines = 3000
	root := t.TempDir()
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "line %d has a needle\nbetween\n", i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "many.txt"), []byte(text.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "one.txt"), []byte(strings.Repeat("needle ", lines)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, ".env"), []byte(strings.Repeat("needle=secret\n", lines)), 0o600))
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", "--max-tokens", "3000", "--allow-path", "none", root)
	for _, test := range []struct {
		args, row string
		notes     string
	}{
		{`"path":"many.txt"`, `(?m)^  \d+: line \d+ has a needle$`, ""},
		{`"path":"many.txt","-C":1`, `(?m)^  \d+: line \d+ has a needle$`, ""},
		{`"path":"many.txt","-n":false`, `(?m)^  line \d+ has a needle$`, ""},
		{`"path":"many.txt","-o":true`, `(?m)^  \d+: needle$`, ""},
		{`"path":"one.txt","-o":true`, `(?m)^  1: needle$`, ""},
		{`"path":".env"`, `(?m)^  \d+: needle=\*+$`, "  … values are masked\n"},
	} {
		row := regexp.MustCompile(test.row)
		var rows []string
		pages := 0
		for offset := 0; ; pages++ {
			got := c.Call("grep", fmt.Sprintf(`{"pattern":"needle","head_limit":0,"offset":%d,%s}`, offset, test.args))
			require.False(t, got.IsError, got.Text)
			require.LessOrEqual(t, len(got.Text), 12_000, test.args)
			require.True(t, strings.Contains(got.Text, test.notes), test.args)
			require.False(t, strings.Contains(got.Text, "note:"), test.args)
			found := row.FindAllString(got.Text, -1)
			rows = append(rows, found...)
			raw, err := json.Marshal(got.Meta)
			require.NoError(t, err)
			var m meta
			require.NoError(t, json.Unmarshal(raw, &m))
			require.Equal(t, lines, m.Matches, test.args)
			require.Empty(t, m.Reduced)
			if m.NextOffset == 0 {
				break
			}
			require.Greater(t, len(got.Text), 8_000, "%s: a page that continues is full", test.args)
			require.Equal(t, offset+len(found), m.NextOffset, test.args)
			require.Contains(t, got.Text[:200], fmt.Sprintf("shown %d-%d (offset=%[2]d for more", offset+1, m.NextOffset))
			offset = m.NextOffset
		}
		require.Len(t, rows, lines, test.args)
		require.Greater(t, pages, 2, test.args)
		if strings.Contains(test.args, "many.txt") && !strings.Contains(test.args, "-o") {
			for i := range lines {
				require.Contains(t, rows[i], fmt.Sprintf("line %d has", i), test.args)
			}
		}
	}
}
