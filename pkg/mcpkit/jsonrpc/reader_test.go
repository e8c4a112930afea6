package jsonrpc_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// readAll returns the lines, with "!" for one that is too long.
func readAll(t *testing.T, src io.Reader, maxLine int) []string {
	t.Helper()
	r := jsonrpc.NewReader(src, maxLine)
	var lines []string
	for {
		line, err := r.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			return lines
		case errors.Is(err, jsonrpc.ErrTooLong):
			lines = append(lines, "!")
		default:
			require.NoError(t, err)
			lines = append(lines, string(line))
		}
	}
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("0123456789", 500_000) // 5 MB
	for name, c := range map[string]struct {
		in   string
		max  int
		want []string
	}{
		"empty":             {"", 0, nil},
		"no final newline":  {"a\nb", 0, []string{"a", "b"}},
		"endings":           {"a\r\nb\n\r\nc\r", 0, []string{"a", "b", "", "c"}},
		"byte order mark":   {"\xef\xbb\xbfa\n\xef\xbb\xbfb", 0, []string{"a", "\xef\xbb\xbfb"}},
		"long":              {"a\n" + long + "\nb\n", 0, []string{"a", long, "b"}},
		"long and the last": {long, 0, []string{long}},
		"too long":          {"a\n" + long + "\nb\n", 1000, []string{"a", "!", "b"}},
		"too long, last":    {"a\n" + long, 1000, []string{"a", "!"}},
		"just fits":         {strings.Repeat("x", 1000) + "\ny", 1000, []string{strings.Repeat("x", 1000), "y"}},
		"just not":          {strings.Repeat("x", 1001) + "\ny", 1000, []string{"!", "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, readAll(t, strings.NewReader(c.in), c.max))
			require.Equal(t, c.want, readAll(t, iotest.DataErrReader(strings.NewReader(c.in)), c.max))
			if len(c.in) < 5000 {
				require.Equal(t, c.want, readAll(t, iotest.OneByteReader(strings.NewReader(c.in)), c.max))
			}
		})
	}
}

// chunks reads at most a set number of bytes at a time.
type chunks struct {
	src  io.Reader
	size int
}

func (c chunks) Read(p []byte) (int, error) { return c.src.Read(p[:min(len(p), c.size)]) }

// Lines about as long as the buffers, in reads of any size, with and without
// further input.
func TestLinesAcrossBuffers(t *testing.T) {
	var want []string
	var text strings.Builder
	for i, n := range []int{1, 4095, 4096, 4097, 0, 8192, 32767, 32768, 32769, 2, 100_000, 100_001, 100_000, 65_536, 3, 250_000, 5} {
		line := strings.Repeat(string(rune('a'+i)), n)
		text.WriteString(line + "\n")
		if n > 100_000 {
			line = "!"
		}
		want = append(want, line)
	}
	for _, size := range []int{1000, 4096, 5000, 32 << 10, 1 << 20} {
		require.Equal(t, want, readAll(t, chunks{strings.NewReader(text.String()), size}, 100_000), size)
	}
}

// A returned line must not change when the next one is read.
func TestLinesAreTheCallers(t *testing.T) {
	r := jsonrpc.NewReader(strings.NewReader("first\nsecond\nthird"), 0)
	first, err := r.ReadLine()
	require.NoError(t, err)
	_, err = r.ReadLine()
	require.NoError(t, err)
	require.Equal(t, "first", string(first))
	require.Equal(t, "first!", string(append(first, '!')))
	third, err := r.ReadLine()
	require.NoError(t, err)
	require.Equal(t, "third", string(third))
}

func TestReadError(t *testing.T) {
	r := jsonrpc.NewReader(iotest.ErrReader(errors.New("unplugged")), 0)
	_, err := r.ReadLine()
	require.EqualError(t, err, "unplugged")
	r = jsonrpc.NewReader(iotest.TimeoutReader(strings.NewReader("a\nb\nc")), 0)
	line, err := r.ReadLine()
	require.NoError(t, err)
	require.Equal(t, "a", string(line))
}

func FuzzReadLine(f *testing.F) {
	f.Add("a\nb\r\n\nc", 3)
	f.Fuzz(func(t *testing.T, in string, maxLine int) {
		maxLine = 1 + maxLine&63
		var want []string
		text := in
		for len(text) > 0 {
			line, rest, _ := strings.Cut(text, "\n")
			text = rest
			if len(line) > maxLine {
				want = append(want, "!")
				continue
			}
			if len(want) == 0 {
				line = strings.TrimPrefix(line, "\xef\xbb\xbf")
			}
			want = append(want, strings.TrimSuffix(line, "\r"))
		}
		require.Equal(t, want, readAll(t, iotest.HalfReader(strings.NewReader(in)), maxLine))
	})
}
