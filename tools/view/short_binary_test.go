package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShortBinaries: a file shorter than its format's header is not shown as
// text in some encoding.
func TestShortBinaries(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct{ content, shown string }{
		"a.gz":  {"\x1f\x8b\x08\x08words", "binary: gzip data"},
		"b.zip": {"PK\x03\x04\x14\x08\x08 some words that follow in a name\n", "binary: zip archive"},
		"c":     {"\x7fELF\x02\x01\x01words and more words that follow\n", "binary: ELF"},
		"d.txt": {"PK is a prefix\n", "\n1\tPK is a prefix"},
		"e.txt": {"GIF89a is a format\n", "\n1\tGIF89a is a format"},
	} {
		f.write(name, []byte(c.content))
		require.Contains(t, f.text(map[string]any{"file_path": name}), c.shown, name)
	}
	for name, content := range map[string]string{"f.png": "\x89PNG\r\n\x1a\n", "g.gif": "GIF89a\x11\x01\x11\x01\xf7"} {
		f.write(name, []byte(content))
		res := f.call(map[string]any{"file_path": name})
		require.NotContains(t, res.Text, "     1\t", name)
		require.Contains(t, res.Text, "hex=true", name)
	}
}
