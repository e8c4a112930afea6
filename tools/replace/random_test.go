package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// desk is a root, with replace running in this process and edit for undo.
type desk struct {
	t     testing.TB
	root  string
	tool  *mcpkit.Tool
	fs    *sandbox.FS
	files *fileedit.Rewriter
}

// memoryDir returns a temporary directory, in memory if possible, because the
// test syncs files often.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "replace")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(memoryDir(t))
	require.NoError(t, err)
	kept := state.Config{Dir: t.TempDir()}
	served, err := newTools(sandbox.Config{Roots: []string{root}}, kept, Config{})
	require.NoError(t, err)
	fsys, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(context.Background())
	require.NoError(t, err)
	return &desk{t: t, root: root, tool: served[0], fs: fsys, files: &fileedit.Rewriter{Store: state.New(kept), Tool: "replace"}}
}

func (d *desk) call(a args) *mcpkit.CallResult {
	d.t.Helper()
	raw, err := json.Marshal(a)
	require.NoError(d.t, err)
	return d.tool.Call(context.Background(), raw)
}

// sample returns random text of lines, in characters that all tested encodings
// have.
func sample(rng *rand.Rand, letters []string) string {
	var text strings.Builder
	for range 1 + rng.IntN(30) {
		for range rng.IntN(20) {
			text.WriteString(letters[rng.IntN(len(letters))])
		}
		text.WriteByte('\n')
	}
	s := text.String()
	if rng.IntN(4) == 0 {
		s = strings.TrimRight(s, "\n")
	}
	return s
}

// written describes the format of a random file.
type written struct {
	encoding textfile.Encoding
	bom      bool
	ending   string
	letters  []string
}

func randomForm(rng *rand.Rand) written {
	ascii := []string{"a", "b", " ", "\t", "{", "}", "word ", "\\n"}
	forms := []written{
		{encoding: textfile.UTF8, letters: append(ascii, "é", "日", "😀", "\u00a0")},
		{encoding: textfile.UTF8, bom: true, letters: append(ascii, "ß")},
		{encoding: textfile.UTF16LE, bom: true, letters: append(ascii, "é", "日", "😀")},
		{encoding: textfile.UTF16BE, bom: true, letters: append(ascii, "é", "日", "😀")},
		{encoding: textfile.Latin1, letters: append(ascii, "é", "ü", "ß")},
		{encoding: textfile.ShiftJIS, letters: append(ascii, "日本語", "ひらがな", "テスト")},
	}
	w := forms[rng.IntN(len(forms))]
	w.ending = []string{"\n", "\n", "\r\n", "\r"}[rng.IntN(4)]
	return w
}

func (w written) bytes(t testing.TB, text string) []byte {
	t.Helper()
	if w.bom {
		text = "\ufeff" + text
	}
	raw, err := w.encoding.Encode(strings.ReplaceAll(text, "\n", w.ending))
	require.NoError(t, err)
	return raw
}

// TestRandomFiles replaces random files by random content: the format of the
// file is kept, its text is the content, undo restores each byte, and repeating
// the call changes nothing.
func TestRandomFiles(t *testing.T) {
	d := newDesk(t)
	rng := rand.New(rand.NewPCG(11, 12))
	rounds := 0
	for round := range 800 {
		w := randomForm(rng)
		before := w.bytes(t, sample(rng, w.letters))
		format := textfile.Detect(before)
		if format.Encoding != w.encoding || format.Ending != map[string]textfile.Ending{"\n": textfile.LF, "\r\n": textfile.CRLF, "\r": textfile.CR}[w.ending] {
			continue // too short to detect: detection may see another format
		}
		rounds++
		name := fmt.Sprintf("%d.txt", round)
		file := filepath.Join(d.root, name)
		require.NoError(t, os.WriteFile(file, before, 0o644))
		content := sample(rng, w.letters)
		given := content
		if rng.IntN(3) == 0 {
			given = strings.ReplaceAll(content, "\n", "\r\n")
		}
		res := d.call(args{"file_path": name, "content": given})
		if format.Guessed && res.Code == toolerr.BadEncoding { // content depends on the guess
			same, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, before, same)
			res = d.call(args{"file_path": name, "content": given, "encoding": string(w.encoding)})
		}
		require.False(t, res.IsError, res.Text)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, w.bytes(t, content), after, "round %d: %s %q", round, format, content)

		res = d.call(args{"file_path": name, "content": given})
		require.Contains(t, res.Text, "unchanged")
		if bytes.Equal(before, after) {
			continue
		}
		_, err = d.files.Undo(context.Background(), d.fs, name, fileedit.Options{})
		require.NoError(t, err)
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, before, again)
	}
	require.Greater(t, rounds, 300)
}

// TestNewFilesAreWhatWasGiven: without conventions in the directory, content is
// written byte for byte.
func TestNewFilesAreWhatWasGiven(t *testing.T) {
	d := newDesk(t)
	rng := rand.New(rand.NewPCG(13, 14))
	letters := []string{"a", "\r", "\n", "\r\n", "\ufeff", "é", "😀", "\\", "\"", "null", " ", "\t", "\u2028"}
	for round := range 300 {
		content := sample(rng, letters)
		name := fmt.Sprintf("%d.txt", round)
		res := d.call(args{"file_path": name, "content": content})
		require.False(t, res.IsError, res.Text)
		got, err := os.ReadFile(filepath.Join(d.root, name))
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
}

// A change in a long line is shown once, with 200 characters around it.
func TestAChangeInALongLineIsShort(t *testing.T) {
	d := newDesk(t)
	words := strings.Repeat("some words ", 600)
	for _, dry := range []bool{true, false} {
		require.NoError(t, os.WriteFile(filepath.Join(d.root, "line.txt"), []byte(words+"\n"+words+"NEEDLE"+words+"\n"+words+"\n"), 0o644))
		res := d.call(args{"file_path": "line.txt", "content": words + "\n" + words + "NEEDLES" + words + "\n" + words + "\n", "dry_run": dry})
		require.False(t, res.IsError, res.Text)
		require.Less(t, len(res.Text), 1200, res.Text)
		require.Equal(t, 1, strings.Count(res.Text, "NEEDLES"), res.Text)
	}
}
