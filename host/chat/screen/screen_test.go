package screen_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/chat/screen"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext é 日 👩‍👩‍👧": "plain\n\ttext é 日 👩‍👩‍👧",
		"\x1b[31m\x07\r\x7f":      `\u001b[31m\u0007\u000d\u007f`,
		"\u009b2J\u202ea\u2066":   `\u009b2J\u202ea\u2066`,
		"\x9b2J \xff":             "\ufffd2J \ufffd",
		"\U000e0041hidden\u2028x": `\ue0041hidden\u2028x`,
	} {
		require.Equal(t, want, screen.Clean(text))
		var out bytes.Buffer
		c := screen.NewCleaner(&out)
		for i := range len(text) {
			c.Write([]byte(text[i : i+1])) //nolint:errcheck // a buffer takes everything
		}
		require.NoError(t, c.End())
		require.Equal(t, want+"\n", out.String(), "in pieces")
	}
	var out bytes.Buffer
	c := screen.NewCleaner(&out)
	c.Write([]byte("a\r\nb\r\n\xe6")) //nolint:errcheck // likewise
	require.NoError(t, c.End())
	require.NoError(t, c.End())
	require.Equal(t, "a\nb\n\ufffd\n", out.String())
}

func TestLine(t *testing.T) {
	require.Equal(t, "a b c", screen.Line(" a\n b\tc ", 20))
	require.Equal(t, "abc", screen.Line("abcdef"[:3], 3))
	require.Equal(t, "ab…", screen.Line("abcdef", 3))
	require.Equal(t, "日…", screen.Line("日本語", 4))
	require.Equal(t, `\u001b[…`, screen.Line("\x1b[31mred", 8))
	require.Empty(t, screen.Line("abc", 0))
	for n := range 12 {
		require.LessOrEqual(t, screen.Columns(screen.Line("e\u0301日本x語", n)), n)
	}
}

func TestTheLineBelowTheText(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, func() int { return 20 })
	sent := func() string {
		defer out.Reset()
		return strings.NewReplacer("\r\x1b[2K", "⌫", "\x1b[2m", "", "\x1b[0m", "").Replace(out.String())
	}
	s.Line("working\x1b[2J")
	require.Equal(t, `working\u001b[2J`, sent())
	s.Write([]byte("text\n")) //nolint:errcheck // a buffer takes everything
	require.Equal(t, "⌫text\n"+`working\u001b[2J`, sent())
	s.Write([]byte("begun")) //nolint:errcheck // likewise
	require.Equal(t, "⌫begun", sent(), "it is not there while a line has not ended")
	s.Line("other")
	require.Empty(t, sent())
	s.EndLine()
	require.Equal(t, "\nother", sent())
	s.Hold()
	require.Equal(t, "⌫", sent())
	s.Line("more")
	s.Write([]byte("later\n")) //nolint:errcheck // likewise
	require.Empty(t, sent())
	s.Release()
	require.Equal(t, "later\nmore", sent())
	s.Line("")
	require.Equal(t, "⌫", sent())
}
