package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const notebook4 = `{
 "nbformat": 4, "nbformat_minor": 5,
 "metadata": {"kernelspec": {"language": "julia"}, "language_info": {"name": "python"}},
 "cells": [
  {"cell_type": "markdown", "source": ["# Title\n", "text"], "attachments": {"a.png": {"image/png": "AAAA"}}},
  {"cell_type": "code", "execution_count": 3, "source": "print(1)\n",
   "outputs": [
    {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]},
    {"output_type": "execute_result", "data": {"text/plain": "<Figure>", "text/html": "<b>x</b>", "image/png": "aGVsbG8gd29ybGQ="}},
    {"output_type": "display_data", "data": {"text/html": ["<table>", "</table>"]}},
    {"output_type": "display_data", "data": {"application/json": {"a": [1, 2]}}},
    {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\u001b[0;31mValueError\u001b[0m: bad"]}
   ]},
  {"cell_type": "code", "execution_count": null, "source": [], "outputs": []}
 ]
}`

const notebook4Text = `[cell 1] markdown
# Title
text
[attachment a.png: image/png, 3 bytes, not shown]

[cell 2] code In[3]
print(1)
[output] stream stdout
1
2
[output] execute_result
<Figure>
[image/png, 11 bytes, not shown]
[output] display_data
<table></table>
[output] display_data
{"a": [1, 2]}
[output] error
ValueError: bad

[cell 3] code
`

const notebook3 = `{"nbformat": 3, "metadata": {"name": "old"}, "worksheets": [{"cells": [
 {"cell_type": "heading", "level": 2, "source": ["Old"]},
 {"cell_type": "code", "language": "python", "prompt_number": 7, "input": ["x = 1\n", "x"],
  "outputs": [{"output_type": "pyout", "prompt_number": 7, "text": ["1"], "png": "AAAA", "html": "<b/>"},
              {"output_type": "stream", "stream": "stderr", "text": "warn"},
              {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": []}]}]}]}`

const notebook3Text = `[cell 1] heading
## Old

[cell 2] code In[7]
x = 1
x
[output] pyout
1
[image/png, 3 bytes, not shown]
[output] stream stderr
warn
[output] pyerr
E: v
`

func rendered(t *testing.T, text string) (*notebook, error) {
	return renderNotebook(t.Context(), strings.NewReader(text), int64(len(text)))
}

func TestNotebooks(t *testing.T) {
	book, err := rendered(t, notebook4)
	require.NoError(t, err)
	require.Equal(t, notebook4Text, book.Text)
	require.Equal(t, []any{4, "python", 3}, []any{book.Format, book.Language, book.Cells})
	book, err = rendered(t, notebook3)
	require.NoError(t, err)
	require.Equal(t, notebook3Text, book.Text)
	require.Equal(t, []any{3, "python", 2}, []any{book.Format, book.Language, book.Cells})
	require.True(t, isNotebook("a/B.IPYNB"))
	require.False(t, isNotebook("ipynb"))
}

func TestLongOutputsAreCutAndSaidSo(t *testing.T) {
	cell := func(text string) string {
		book, err := rendered(t, fmt.Sprintf(`{"nbformat":4,"cells":[{"cell_type":"code","source":"x","outputs":[{"output_type":"stream","text":%q}]}]}`, text))
		require.NoError(t, err)
		return book.Text
	}
	many := cell(strings.Repeat("line\n", 5000))
	require.Less(t, strings.Count(many, "\n"), maxOutputLines+10)
	require.Contains(t, many, "more bytes of this output in 490")
	long := cell(strings.Repeat("é", 100_000))
	require.Less(t, len(long), maxOutputBytes+200)
	require.Contains(t, long, "more bytes of this output in 1 lines")
	require.NotContains(t, cell("short\n"), "not shown")
	require.NotContains(t, cell(strings.Repeat("x\n", maxOutputLines)), "not shown")
}

func TestWhatIsNoNotebook(t *testing.T) {
	for _, text := range []string{"", "not json", "[]", "{}", `{"a":1}`, `{"cells":3}`, strings.Repeat("[", 100_000)} {
		_, err := rendered(t, text)
		require.Error(t, err, "%.20q", text)
		require.Equal(t, toolerr.BadEncoding, toolerr.CodeOf(err))
	}
	_, err := renderNotebook(t.Context(), strings.NewReader(""), maxNotebook+1)
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
}

func TestANSIIsStripped(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "\x1b[31mred\x1b[0m": "red", "cut \x1b[12": "cut ", "\x1b[": "", "a\x1b[1;2Hb\x1b[mc": "abc",
	} {
		require.Equal(t, want, stripANSI(in), "%q", in)
	}
}

func FuzzNotebook(f *testing.F) {
	f.Add([]byte(notebook4))
	f.Add([]byte(notebook3))
	f.Fuzz(func(t *testing.T, data []byte) {
		if book, err := rendered(t, string(data)); err == nil {
			require.NotNil(t, book)
		}
	})
}

// TestNotebookLines: a text stored as a list of lines is joined unchanged, with
// escapes and invalid UTF-8; any other value stays JSON.
func TestNotebookLines(t *testing.T) {
	for in, want := range map[string]string{
		`["a\n", "b\"\\", "\u00e9"]`: "a\nb\"\\é", "[ ]": "", "[\"\xff\"]": "\uFFFD", `"x\ty"`: "x\ty", "null": "",
		`["a", 1]`: `["a", 1]`, `["a", ["b"]]`: `["a", ["b"]]`, `{"a": 1}`: `{"a": 1}`, `["\\","]"]`: `\]`,
	} {
		var got nbText
		require.NoError(t, json.Unmarshal([]byte(in), &got))
		require.Equal(t, want, string(got), in)
	}
}

// TestNotebookMemory: many cells, or many lines of a cell, need little more
// memory than their size in the file. It was thirty times as much.
func TestNotebookMemory(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const size, base = 16 << 20, 64 << 20
	f := newFixture(t)
	many := func(head, part, tail string) string {
		return head + strings.Repeat(part+",", (size-len(head)-len(part)-len(tail))/(len(part)+1)) + part + tail
	}
	f.write("cells.ipynb", []byte(many(`{"nbformat":4,"cells":[`, `{"source":[],"outputs":[]}`, `]}`)))
	f.write("lines.ipynb", []byte(many(`{"nbformat":4,"cells":[{"source":[`, `""`, `]}]}`)))
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/view"), f.root, "--no-state")
	for _, name := range []string{"cells.ipynb", "lines.ipynb"} {
		got := c.Call("view", map[string]any{"file_path": name})
		require.False(t, got.IsError, got.Text)
		require.Contains(t, got.Text, "[cell 1] untyped")
	}
	if _, peak, ok := mcpkittest.RSS(t, c.PID()); ok {
		t.Logf("peak %d MB for files of %d MB", peak>>20, size>>20)
		require.Less(t, peak, int64(4*size+base))
	}
}

// TestNotebookIsCancelled: cancellation also works between two cells.
func TestNotebookIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := renderNotebook(ctx, io.MultiReader(
		strings.NewReader(`{"cells":[`+strings.Repeat(`{"source":"x"},`, 1000)),
		readerFunc(func(p []byte) (int, error) {
			cancel()
			return copy(p, `{"source":"y"},`), io.EOF
		}),
		readerFunc(func([]byte) (int, error) {
			t.Error("it is read on")
			return 0, io.EOF
		}),
	), 1<<20)
	require.ErrorIs(t, err, context.Canceled)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
