//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// maxResident bounds the server's memory for any output, in bytes.
const maxResident = 64 << 20

// requireSmall checks a server's peak memory.
func requireSmall(t *testing.T, s server) {
	t.Helper()
	if mcpkittest.RaceEnabled {
		return // takes several times the memory
	}
	_, peak, ok := mcpkittest.RSS(t, s.PID())
	require.True(t, ok)
	require.LessOrEqual(t, peak, int64(maxResident))
}

// A long output is shown by its beginning and end, cut at lines, and a file
// outside the roots has all of it, which view and grep can show. BASH_LONG=1
// makes it 2 GB; the file then ends at its bound and the tail is still right.
func TestWholeOutputIsPaged(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const width, chunk = 100, 30_000 // lines of width bytes, repeated
	times := 40
	if os.Getenv("BASH_LONG") != "" {
		times = 680
	}
	lines := times * chunk
	p := newPlace(t)
	s := p.serve()
	r := s.bash(fmt.Sprintf(`seq -f '%%0%d.0f' 1 %d > chunk; for ((i = 0; i < %d; i++)); do cat chunk; done`, width-1, chunk, times), "timeout", 600_000, "auto_background_after", 600_000)
	require.False(t, r.IsError, r.Text)
	requireSmall(t, s)
	line := func(n int) string { return fmt.Sprintf("%0*d\n", width-1, (n-1)%chunk+1) }
	size := int64(lines) * int64(width)
	require.Equal(t, size, number(t, r, "output_bytes"))
	require.EqualValues(t, lines, number(t, r, "output_lines"))
	require.Equal(t, true, r.Meta["truncated"])
	shown := printed(r)
	require.LessOrEqual(t, len(shown), 30_300)
	require.True(t, strings.HasPrefix(shown, line(1)+line(2)), "%.300s", shown)
	require.True(t, strings.HasSuffix(shown, line(lines-1)+line(lines)))
	head, rest, found := strings.Cut(shown, "[… ")
	require.True(t, found)
	require.True(t, strings.HasSuffix(head, "\n"))
	note, tail, _ := strings.Cut(rest, " …]\n")
	require.InDelta(t, 0.3, float64(len(head))/30_000, 0.01)
	require.InDelta(t, 0.7, float64(len(tail))/30_000, 0.01)
	var leftLines, leftBytes int64
	_, err := fmt.Sscanf(note, "%d lines, %d bytes left out", &leftLines, &leftBytes)
	require.NoError(t, err, note)
	require.Equal(t, size, int64(len(head)+len(tail))+leftBytes)
	require.EqualValues(t, lines, int64(strings.Count(head+tail, "\n"))+leftLines)

	file := text(t, r, "output_file")
	require.Contains(t, note, file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	kept := min(size, 256<<20)
	require.Equal(t, kept, info.Size())
	require.Equal(t, kept, number(t, r, "output_file_bytes"))
	require.Equal(t, kept < size, strings.Contains(note, "the first"))

	view := p.serveBin(mcpkittest.Build(t, "./tools/view"), mcpkittest.Options{})
	v := view.Call("view", arg("file_path", file, "offset", 100_000, "limit", 2))
	require.False(t, v.IsError, v.Text)
	require.Contains(t, v.Text, line(100_000)[1:])
	require.Contains(t, view.Call("view", arg("file_path", p.kept+"/other")).Code, "OUTSIDE_ROOT", "nothing else of the state is shown")
	// A command may read the file but not write it.
	require.Contains(t, s.bash(`f="`+file+`"; tail -c 100 "$f" | tail -n 1; echo x >> "$f" || echo refused`).Text, "refused")
	if size > 64<<20 {
		return // larger than grep searches
	}
	grep := p.serveBin(mcpkittest.Build(t, "./tools/grep"), mcpkittest.Options{})
	g := grep.Call("grep", arg("pattern", "0012345$", "path", file))
	require.False(t, g.IsError, g.Text)
	require.Contains(t, g.Text, line(12_345)[:width-1])
}

// An output too long to show but short enough for memory has a file, too, and
// grep finds the omitted part in it.
func TestShorterOutputHasItsFile(t *testing.T) {
	p := newPlace(t)
	s := p.serve()
	r := s.bash("seq 100000 110000")
	file := text(t, r, "output_file")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.EqualValues(t, number(t, r, "output_bytes"), len(content))
	require.NotContains(t, r.Text, "104321")
	grep := p.serveBin(mcpkittest.Build(t, "./tools/grep"), mcpkittest.Options{})
	require.Contains(t, grep.Call("grep", arg("pattern", "^104321$", "path", file)).Text, "104321")

	// Without a state directory it has no file; the rest is the same.
	s = server{t, mcpkittest.StartWith(t, mcpkittest.Build(t, "./tools/bash"), mcpkittest.Options{
		Args: []string{"--root", p.root, "--no-state"}, Dir: p.root, Env: p.env,
	})}
	r = s.bash("seq 100000 110000")
	require.NotContains(t, r.Meta, "output_file")
	require.Contains(t, r.Text, "lines, ")
	require.Contains(t, r.Text, "110000\nexit 0")
}

// An endless command is ended, and the end of its output is shown.
func TestEndlessOutput(t *testing.T) {
	s := newPlace(t).serve("--max-output", "8M")
	r := s.bash("yes 'for ever'", "timeout", 2000)
	require.Equal(t, "TIMEOUT", r.Code, r.Text)
	require.Contains(t, r.Text, "for ever\n")
	require.Contains(t, r.Text, "lines, ")
	require.LessOrEqual(t, len(r.Text), 32_000)
	require.EqualValues(t, 8<<20, number(t, r, "output_file_bytes"))
	requireSmall(t, s)
}

// Binary output is described instead of printed; text is made safe; a line of
// 100 MB and a character split between two writes are handled.
func TestOddOutput(t *testing.T) {
	s := newPlace(t).serve()
	for _, c := range []struct{ command, want, not string }{
		{"head -c 100000 /dev/urandom", "100000 bytes, not shown], in ", "\ufffd\ufffd"},
		{`printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'`, "PNG image", "IHDR"},
		{`printf 'a\0b\0c\n'`, `a\x00b\x00c`, "\x00"},
		{`printf '\e[31mred\e[0m \e]0;title\a\u202eturned'`, `\x1b[31mred\x1b[0m \x1b]0;title\x07\u202eturned`, "\x1b"},
		{`printf '\xc3'; sleep 0.05; printf '\xa9\n'`, "é\n", "\ufffd"},
		{`printf 'a\xffb\n'`, "a\ufffdb\n", ""},
		{`printf '10%%\r20%%\r\n'`, `10%\r20%` + "\n", "\r"},
		{"head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end", "\nend\nexit 0", ""},
	} {
		r := s.bash(c.command)
		require.False(t, r.IsError, r.Text)
		require.Contains(t, r.Text, c.want, c.command)
		if c.not != "" {
			require.NotContains(t, r.Text, c.not, c.command)
		}
		require.LessOrEqual(t, len(r.Text), 33_000)
	}
	require.Contains(t, s.bash(`printf '\e[1mx'`).Text, "1 control character escaped")
	requireSmall(t, s)
}

// Wide characters never push the last line beyond the budget.
func TestBudget(t *testing.T) {
	s := newPlace(t).serve("--max-tokens", "2000")
	r := s.bash("for i in {1..3000}; do echo 漢字漢字漢字漢字; done; printf '\\e%.0s' {1..3000}; echo")
	require.LessOrEqual(t, len(r.Text), 8000)
	require.Contains(t, r.Text, "exit 0")
	require.Contains(t, r.Text, "漢字")
	require.NotEmpty(t, text(t, r, "output_file"))
}
