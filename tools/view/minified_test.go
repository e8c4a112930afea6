package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// widest returns the number of characters in the longest line of a result.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		if _, shown, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			most = max(most, len([]rune(shown)))
		}
	}
	return most
}

// For a bundle whose lines are mostly huge, a result shows a few hundred
// characters per line; a file with some long lines is shown as usual.
func TestMinifiedFiles(t *testing.T) {
	f := newFixture(t)
	huge := strings.Repeat("é=function(){};", 2000)
	bundle := strings.Repeat(huge+"\n", 60)
	prose := strings.Repeat(strings.Repeat("word ", 300)+"\n\n", 20) // 1500 characters
	mixed := strings.Repeat("short\n", 10) + strings.Repeat(huge+"\n", 10)
	f.write("bundle.js", []byte(bundle))
	f.write("one.js", []byte(huge))
	f.write("licensed.js", []byte("/* licence */\n"+huge+"\n"+huge+"\n"+huge+"\n"))
	f.write("prose.md", []byte(prose))
	f.write("mixed.txt", []byte(mixed))
	for _, test := range []struct {
		args  map[string]any
		chars int
	}{
		{map[string]any{"file_path": "bundle.js"}, 200},
		{map[string]any{"file_path": "bundle.js", "tail": 20}, 200},
		{map[string]any{"file_path": "bundle.js", "offset": 3, "limit": 40}, 200},
		{map[string]any{"file_path": "bundle.js", "offset": 3, "limit": 2}, 2000},
		{map[string]any{"file_path": "one.js"}, 200},
		{map[string]any{"file_path": "one.js", "offset": 1, "limit": 1}, 2000},
		{map[string]any{"file_path": "licensed.js"}, 200},
		{map[string]any{"file_path": "prose.md"}, 1500},
		{map[string]any{"file_path": "mixed.txt"}, 2000},
	} {
		text := f.text(test.args)
		require.Equal(t, test.chars, widest(text), "%v", test.args)
		if test.chars == 200 {
			require.Less(t, len(text), 60*(2*200+8)+1000, "%v", test.args)
			require.Contains(t, text, "cut after 200 characters", "%v", test.args)
			require.Contains(t, text, "limit=1 shows 2000 characters of a line", "%v", test.args)
		}
	}
}

// pages, an argument of Claude Code, selects a range of a PDF's pages.
func TestPagesOfPDF(t *testing.T) {
	f := newFixture(t)
	var contents []string
	for i := 1; i <= 7; i++ {
		contents = append(contents, fmt.Sprintf("BT /F1 10 Tf 72 700 Td (page %d) Tj ET", i))
	}
	f.write("x.pdf", simplePDF(contents...))
	for pages, want := range map[any]string{"2-3": "23", "6": "6", 5: "5", "6-": "67", "1,3": "123", "6-9": "67"} {
		text := f.text(map[string]any{"file_path": "x.pdf", "pages": pages})
		var got string
		for i := 1; i <= 7; i++ {
			if strings.Contains(text, fmt.Sprintf("\npage %d\n", i)) {
				got += fmt.Sprint(i)
			}
		}
		require.Equal(t, want, got, "%v: %s", pages, text)
	}
	require.True(t, f.call(map[string]any{"file_path": "x.pdf", "pages": "2-3", "offset": 4}).IsError)
}
