package splice_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

func open(t testing.TB, raw []byte) *splice.File {
	t.Helper()
	f, err := splice.Open(t.Context(), raw)
	require.NoError(t, err)
	return f
}

// TestApply: in every encoding the bytes next to a change are kept, and the
// text has the change, across many marks of the mapping.
func TestApply(t *testing.T) {
	for e, text := range map[textfile.Encoding]string{
		textfile.UTF8:        "naïve 日本 – text\r\n",
		textfile.UTF16LE:     "plain text, é 日本 😀\n",
		textfile.UTF16BE:     "plain text, é 日本 😀\n",
		textfile.Latin1:      "été à l'école, garçon\n",
		textfile.Windows1252: "l’œuvre coûte 3 € – voilà\n",
		textfile.ShiftJIS:    "日本語のテキストです。カタカナ\n",
		textfile.GBK:         "你好，世界！这是一个测试文件。\n",
	} {
		raw, err := e.Encode(strings.Repeat(text, 1500))
		require.NoError(t, err)
		if e.IsUTF16() {
			mark, err := e.Encode("\uFEFF")
			require.NoError(t, err)
			raw = append(mark, raw...)
		}
		f := open(t, raw)
		require.Equal(t, e, f.Encoding)
		rng := rand.New(rand.NewPCG(1, 2))
		var changes []textdiff.Change
		want, last := "", 0
		for at := rng.IntN(50); at < len(f.Text); at += rng.IntN(3000) {
			end := at + rng.IntN(40)
			if end > len(f.Text) {
				break
			}
			_, ok1 := f.RawOffset(at)
			_, ok2 := f.RawOffset(end)
			if !ok1 || !ok2 || at < last || !utf8.RuneStart(f.Text[at]) || end < len(f.Text) && !utf8.RuneStart(f.Text[end]) {
				continue
			}
			changes = append(changes, textdiff.Change{Start: at, End: end, New: text})
			want += string(f.Text[last:at]) + text
			last = end
		}
		want += string(f.Text[last:])
		require.Greater(t, len(changes), 5)
		result, err := f.Apply(t.Context(), changes)
		require.NoError(t, err)
		got := result.Bytes()
		require.True(t, want == e.Decode(got[f.BOM:]), "%s", e)
		require.Equal(t, raw[:f.BOM], got[:f.BOM])
		var out bytes.Buffer
		n, err := result.WriteTo(&out)
		require.NoError(t, err)
		require.EqualValues(t, len(got), n)
		require.Equal(t, got, out.Bytes())
	}
}

func TestRefused(t *testing.T) {
	_, err := splice.Open(t.Context(), []byte("a\x00b"))
	require.True(t, toolerr.Is(err, toolerr.BinaryFile))

	latin := open(t, []byte("caf\xe9 cr\xe8me\n"))
	_, err = latin.Apply(t.Context(), []textdiff.Change{{Start: 0, End: 0, New: "日"}})
	require.True(t, toolerr.Is(err, toolerr.BadEncoding))
	require.ErrorContains(t, err, "日")

	plain := open(t, []byte("a\n"))
	_, err = plain.Apply(t.Context(), []textdiff.Change{{Start: 0, End: 1, New: "\xff"}})
	require.True(t, toolerr.Is(err, toolerr.BadEncoding))
	_, err = plain.Apply(t.Context(), []textdiff.Change{{Start: 1, End: 2}, {Start: 0, End: 1}})
	require.True(t, toolerr.Is(err, toolerr.Internal))

	// A lead byte without its second byte would absorb text inserted after it.
	raw, err := textfile.ShiftJIS.Encode(strings.Repeat("日本語のテキストです。カタカナとひらがな、表示\n", 200))
	require.NoError(t, err)
	f := open(t, append(raw, 0x81, '\n', 'y', '\n'))
	require.Equal(t, textfile.ShiftJIS, f.Encoding)
	at := bytes.LastIndex(f.Text, []byte("\ny"))
	_, err = f.Apply(t.Context(), []textdiff.Change{{Start: at, End: at, New: "AB"}})
	require.True(t, toolerr.Is(err, toolerr.BadEncoding))
	result, err := f.Apply(t.Context(), []textdiff.Change{{Start: at + 1, End: at + 2, New: "AB"}})
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(result.Bytes(), []byte("\x81\nAB\n")))
}

func TestLines(t *testing.T) {
	f := open(t, []byte("\xef\xbb\xbfone\r\ntwo\nthree"))
	require.Equal(t, 3, f.LineCount())
	require.Equal(t, 3, f.BodyStart)
	require.Equal(t, 3, f.LineStart(5))
	require.Equal(t, 8, f.LineEnd(3))
	require.Equal(t, "one", string(f.TrimEnding(f.Text[3:8])))
	number := f.LineNumberer()
	require.Equal(t, []int{1, 2, 3}, []int{number(4), number(9), number(len(f.Text))})

	cr := open(t, []byte("one\rtwo\r"))
	require.Equal(t, 2, cr.LineCount())
	require.Equal(t, "one", string(cr.TrimEnding(cr.Text[:4])))
	result, err := cr.Apply(t.Context(), []textdiff.Change{{Start: 0, End: 3, New: "1"}})
	require.NoError(t, err)
	require.Equal(t, "@@ -1,2 +1,2 @@\n-one\n+1\n two\n", result.Diff(textdiff.Options{}).Text)
}

// FuzzApply: one change of any text file gives the changed text, or is refused.
func FuzzApply(f *testing.F) {
	f.Add([]byte("caf\xe9 cr\xe8me\n"), 2, 4, "x")
	f.Add([]byte("\xff\xfea\x00\x3d\xd8\x00\xde"), 0, 1, "é")
	f.Add([]byte("\x93\xfa\x96{\x8c\xea\x82\xcc\n\x81\n"), 3, 9, "日")
	f.Fuzz(func(t *testing.T, raw []byte, start, end int, newText string) {
		file, err := splice.Open(t.Context(), raw)
		if err != nil || start < file.BodyStart || end < start || end > len(file.Text) {
			return
		}
		result, err := file.Apply(t.Context(), []textdiff.Change{{Start: start, End: end, New: newText}})
		if err != nil {
			require.True(t, toolerr.Is(err, toolerr.BadEncoding))
			return
		}
		got := result.Bytes()
		require.Len(t, got, result.Size())
		want := string(file.Text[:start]) + newText + string(file.Text[end:])
		if file.Encoding == textfile.UTF8 {
			require.Equal(t, want, string(got))
			return
		}
		require.Equal(t, want, file.Encoding.Decode(got[file.BOM:]))
	})
}
