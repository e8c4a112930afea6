package textfile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func scan(t testing.TB, data []byte) *textfile.Index {
	t.Helper()
	x, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{})
	require.NoError(t, err)
	return x
}

func lines(t testing.TB, x *textfile.Index, data []byte, first int64, limit, maxChars int) []textfile.Line {
	t.Helper()
	var got []textfile.Line
	err := x.EachLine(bytes.NewReader(data), first, maxChars, func(l textfile.Line) bool {
		if len(got) == limit {
			return false
		}
		got = append(got, l)
		return true
	})
	require.NoError(t, err)
	return got
}

// naive splits decoded text in the simplest way.
func naive(x *textfile.Index, data []byte) []string {
	text := x.Encoding.Decode(data[x.BOM:])
	if text == "" {
		return nil
	}
	end := "\n"
	if x.Ending == textfile.CR {
		end = "\r"
	}
	parts := strings.Split(text, end)
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	} else if end == "\n" {
		parts[len(parts)-1] += "\x00" // without an ending, so keep a final \r
	}
	for i := range parts {
		cut, unended := strings.CutSuffix(parts[i], "\x00")
		if end == "\n" && !unended {
			cut = strings.TrimSuffix(cut, "\r")
		}
		parts[i] = cut
	}
	return parts
}

func randomText(rng *rand.Rand, alphabet []rune, size int) string {
	var b strings.Builder
	lineLength := 1 + rng.IntN(300)
	for b.Len() < size {
		switch rng.IntN(lineLength) {
		case 0:
			b.WriteString([]string{"\n", "\r\n", "\n", "\r"}[rng.IntN(4)])
		default:
			b.WriteRune(alphabet[rng.IntN(len(alphabet))])
		}
	}
	return b.String()
}

func TestWindowsEqualNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	rounds := 36
	if mcpkittest.RaceEnabled {
		rounds = 6
	}
	for round := range rounds {
		e := []textfile.Encoding{textfile.UTF8, textfile.UTF16LE, textfile.UTF16BE, textfile.Latin1, textfile.ShiftJIS, textfile.GBK}[round%6]
		alphabet := []rune("abc def {}")
		switch e {
		case textfile.ShiftJIS:
			alphabet = append(alphabet, []rune("日本語のテキスト表示")...)
		case textfile.GBK:
			alphabet = append(alphabet, []rune("中文测试的一是不")...)
		case textfile.Latin1:
			alphabet = append(alphabet, []rune("éàü")...)
		default:
			alphabet = append(alphabet, []rune("éàü日本語😀\u0a0a\u0d0a\u0a0d")...)
		}
		data := encode(t, e, randomText(rng, alphabet, 1+rng.IntN(1<<(4+rng.IntN(17)))))
		x, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{Encoding: e})
		require.NoError(t, err)
		want := naive(x, data)
		require.Equal(t, len(want), int(x.Lines), "round %d %s", round, e)
		require.Equal(t, textfile.EtagOf(data), x.Etag)
		for range 20 {
			first, limit := 1+rng.IntN(len(want)+2), 1+rng.IntN(50)
			got := lines(t, x, data, int64(first), limit, 1<<20)
			expect := want[min(first-1, len(want)):min(first-1+limit, len(want))]
			require.Len(t, got, len(expect), "round %d", round)
			for i, l := range got {
				require.Equal(t, expect[i], l.Text, "round %d line %d", round, l.Number)
				raw := data[l.Offset : l.Offset+l.Size]
				require.Equal(t, textfile.LineSum(raw), l.Sum)
				require.Equal(t, l.Text, strings.TrimRight(e.Decode(raw), "\r\n")+l.Text[len(strings.TrimRight(l.Text, "\r\n")):])
			}
		}
	}
}

func TestFactsAcrossChunks(t *testing.T) {
	// Line endings and characters that cross the edge of a chunk.
	for shift := range 5 {
		for _, piece := range []string{"\r\n", "日", "😀", "é\r\n", "\r"} {
			var b strings.Builder
			for b.Len() < 4*textfile.ChunkSize {
				b.WriteString(strings.Repeat("x", textfile.ChunkSize-b.Len()%textfile.ChunkSize-shift))
				b.WriteString(piece)
				b.WriteString(strings.Repeat("y", 10))
			}
			data := []byte(b.String())
			x := scan(t, data)
			require.Equal(t, textfile.UTF8, x.Encoding)
			require.Zero(t, x.Invalid, "%q shifted %d", piece, shift)
			require.Equal(t, textfile.Detect(data).Ending, x.Ending, "%q shifted %d", piece, shift)
		}
	}
}

func TestEmptyAndUnended(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int64
		final bool
	}{{"", 0, false}, {"\n", 1, true}, {"a", 1, false}, {"a\n", 1, true}, {"a\nb", 2, false}, {"\n\n", 2, true}, {"\xef\xbb\xbf", 0, false}, {"\xef\xbb\xbfa\n", 1, true}} {
		x := scan(t, []byte(c.text))
		require.Equal(t, c.lines, x.Lines, "%q", c.text)
		require.Equal(t, c.final, x.Final, "%q", c.text)
	}
}

func TestLongLinesAreCut(t *testing.T) {
	long := strings.Repeat("日", 3_000_000)
	data := []byte("first\n" + long + "\nlast\n" + strings.Repeat("e", 2000) + "\n" + strings.Repeat("e", 2001))
	x := scan(t, data)
	got := lines(t, x, data, 1, 10, 2000)
	require.Len(t, got, 5)
	require.Equal(t, strings.Repeat("日", 2000), got[1].Text)
	require.True(t, got[1].Cut)
	require.EqualValues(t, len(long)+1, got[1].Size)
	require.Equal(t, "last", got[2].Text)
	require.False(t, got[3].Cut)
	require.True(t, got[4].Cut)
	require.Len(t, got[4].Text, 2000)
}

// zeros is a file of one line that is too long for memory.
type zeros struct{ size int64 }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), z.size-off))
	for i := range p[:n] {
		p[i] = 'a'
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestOneGiantLine(t *testing.T) {
	z := zeros{1 << 26}
	x, err := textfile.Scan(context.Background(), z, z.size, textfile.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, x.Lines)
	allocated := testing.AllocsPerRun(1, func() {
		err = x.EachLine(z, 1, 2000, func(l textfile.Line) bool {
			require.True(t, l.Cut)
			require.Len(t, l.Text, 2000)
			require.Equal(t, z.size, l.Size)
			return true
		})
	})
	require.NoError(t, err)
	require.Less(t, allocated, 100.0)
}

func TestShrunkenFile(t *testing.T) {
	_, err := textfile.Scan(context.Background(), strings.NewReader("short"), 100, textfile.Options{})
	require.ErrorIs(t, err, textfile.ErrChanged)
}

func TestScanStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := textfile.Scan(ctx, zeros{1 << 40}, 1<<40, textfile.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestEtags(t *testing.T) {
	require.Equal(t, textfile.EtagOf(nil), scan(t, nil).Etag)
	data := bytes.Repeat([]byte("abc\n"), textfile.ChunkSize)
	x := scan(t, data)
	require.Equal(t, textfile.EtagOf(data), x.Etag)
	data[len(data)/2]++
	require.NotEqual(t, textfile.EtagOf(data), x.Etag)
	require.Len(t, x.Etag.String(), 8)
	require.True(t, x.Etag.Matches(x.Etag.String()))
	require.True(t, x.Etag.Matches(x.Etag.Full()))
	require.False(t, x.Etag.Matches("00000000"))
	require.False(t, x.Etag.Matches(""))
	require.False(t, x.Etag.Matches("zzzzzzzz"))
}

func FuzzWindow(f *testing.F) {
	f.Add([]byte("a\r\nb\nc"), uint8(0), uint16(2))
	f.Add([]byte("\xff\xfea\x00\n\x00b\x00"), uint8(1), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, which uint8, first uint16) {
		e := textfile.Encoding(textfile.EncodingNames()[int(which)%len(textfile.EncodingNames())])
		x, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{Encoding: e})
		require.NoError(t, err)
		at := int64(x.BOM)
		var number int64
		err = x.EachLine(bytes.NewReader(data), 1, 50, func(l textfile.Line) bool {
			number++
			require.Equal(t, number, l.Number)
			require.Equal(t, at, l.Offset)
			require.Positive(t, l.Size)
			at += l.Size
			return true
		})
		require.NoError(t, err)
		require.Equal(t, x.Lines, number)
		if x.Size > int64(x.BOM) {
			require.Equal(t, x.Size, at)
		}
		_, err = x.LineOffset(bytes.NewReader(data), int64(first))
		require.NoError(t, err)
	})
}

func BenchmarkScan(b *testing.B) {
	line := "2026-11-21T10:00:00 INFO request served status=200 path=/api/v1/items\n"
	for name, data := range map[string][]byte{
		"ascii": bytes.Repeat([]byte(line), 1_000_000),
		"crlf":  bytes.Repeat([]byte(strings.ReplaceAll(line, "\n", "\r\n")), 1_000_000),
		"utf8":  bytes.Repeat([]byte("日本語のログ行です "+line), 500_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleIndex_EachLine() {
	data := []byte("one\ntwo\nthree\n")
	x, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{})
	if err != nil {
		panic(err)
	}
	err = x.EachLine(bytes.NewReader(data), 2, textfile.DefaultMaxChars, func(l textfile.Line) bool {
		fmt.Println(l.Number, l.Offset, l.Text)
		return true
	})
	fmt.Println(x.Format, err)
	// Output:
	// 2 4 two
	// 3 8 three
	// utf-8 lf <nil>
}
