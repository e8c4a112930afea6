package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestSparse: a file that is too large to read before the deadline is still
// answered for, without reading it.
func TestSparse(t *testing.T) {
	f := newFixture(t)
	for name, head := range map[string]string{"holes": "\x00", "text": strings.Repeat("a line\n", 40_000), "x.png": "\x89PNG\r\n\x1a\n"} {
		f.write(name, []byte(head))
		if err := os.Truncate(filepath.Join(f.root, name), 1<<40); err != nil {
			t.Logf("not on this file system: %s", err)
			return
		}
	}
	got := f.text(map[string]any{"file_path": "holes"})
	require.Contains(t, got, "holes  binary: data of unknown type  1099511627776 bytes  no etag: file too large\n")
	got = f.text(map[string]any{"file_path": "text", "hex": true, "offset": 1<<40 - 16})
	require.Contains(t, got, "text  bytes 1099511627760-1099511627775 of 1099511627776  hex  no etag")
	got = f.text(map[string]any{"file_path": "text", "metadata": true})
	require.Contains(t, got, "text (judged by its first bytes), utf-8")
	require.Contains(t, got, "size:           1099511627776 bytes")
	for _, args := range []map[string]any{{"file_path": "text"}, {"file_path": "text", "tail": 3}, {"file_path": "holes", "encoding": "latin-1"}} {
		res := f.call(args)
		require.Equal(t, toolerr.TooLarge, res.Code, res.Text)
		require.Contains(t, res.Text, "hex=true")
	}
	res := f.call(map[string]any{"file_path": "x.png"})
	require.True(t, res.IsError, res.Text)
	require.NotEqual(t, toolerr.Timeout, res.Code)
}

// TestTailSaysAllThatIsBefore: the call suggested in the note shows all
// requested lines that did not fit.
func TestTailSaysAllThatIsBefore(t *testing.T) {
	f := newFixture(t)
	f.write("log", []byte(strings.Repeat("x\n", 60_000)))
	got := f.text(map[string]any{"file_path": "log", "tail": 50_000})
	header, _, _ := strings.Cut(got, "\n")
	var first, last, lines, shown, offset, limit int64
	_, err := fmt.Sscanf(header, "log  lines %d-%d of %d", &first, &last, &lines)
	require.NoError(t, err)
	_, err = fmt.Sscanf(got[strings.LastIndex(got, "note: "):], "note: only the last %d lines fit; before them: view offset=%d limit=%d", &shown, &offset, &limit)
	require.NoError(t, err)
	require.Equal(t, []int64{60_000, 60_000, 10_001, first - 10_001}, []int64{last, lines, offset, limit})
}

// TestTextThatBeginsAsMedia: a text that begins with an image format's letters
// is shown as text.
func TestTextThatBeginsAsMedia(t *testing.T) {
	f := newFixture(t)
	for _, text := range []string{"GIF89a is the name of a format\n", "%PDF-1.4 is how they begin\n", "RIFFabcdWEBP\n"} {
		f.write("notes.txt", []byte(text))
		require.Contains(t, f.text(map[string]any{"file_path": "notes.txt"}), "line 1 of 1  etag=")
	}
	f.write("bad.gif", []byte("GIF89a\x00\x00"))
	require.Equal(t, toolerr.BinaryFile, f.call(map[string]any{"file_path": "bad.gif"}).Code)
}

// TestPathsHaveTheirOwnRanges: a range given together with paths is not ignored
// silently.
func TestPathsHaveTheirOwnRanges(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", []byte("1\n2\n3\n"))
	list := []map[string]any{{"file_path": "a.txt"}}
	for name, value := range map[string]any{"offset": 2, "limit": 1, "tail": 1, "section": "x"} {
		res := f.call(map[string]any{"paths": list, name: value})
		require.Equal(t, toolerr.InvalidParams, res.Code, name)
		require.Contains(t, res.Text, "in each item")
	}
	require.Contains(t, f.text(map[string]any{"file_path": "a.txt", "limit": 1, "paths": list}), "lines 1-3 of 3")
}
