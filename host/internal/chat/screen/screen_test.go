package screen_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
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

// Nobody sees what is not shown, but where it is part of how people write.
func TestWhatIsNotSeen(t *testing.T) {
	for _, hidden := range []rune{0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e,
		0x2060, 0x2061, 0x2064, 0x2065, 0x2066, 0x2069, 0x206a, 0x206f, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xfffb, 0x1bca0, 0x1d173,
		0xe0001, 0xe0041, 0xe007f, 0xe0100, 0xe01ef} {
		for _, before := range []string{"", "a", "é", "я", " ", ")", "\n", "日", "ア"} {
			if before == "日" && (hidden == 0xfe00 || hidden == 0xfe0f || hidden >= 0xe0100) {
				continue
			}
			text := before + string(hidden) + "b"
			require.Equal(t, fmt.Sprintf(`%s\u%04xb`, before, hidden), screen.Clean(text))
			require.Equal(t, len(before)+len(fmt.Sprintf(`\u%04xb`, hidden)), len(screen.Clean(text)))
		}
	}
	for _, text := range []string{
		"می\u200cخواهم", "نامه\u200cای", "مُ\u200cخ", "क्\u200dष", "ക്\u200d", "শ্\u200cয", "ශ්\u200dර", // Persian, Hindi, Malayalam, Bengali, Sinhala
		"👩\u200d👩\u200d👧", "👩🏽\u200d🚀", "❤\ufe0f\u200d🔥", "🏳\ufe0f\u200d🌈", "🙂\u200d↔\ufe0f", "✔\ufe0f", "⚠\ufe0f", "1\ufe0f\u20e3", "#\ufe0f\u20e3", "ℹ\ufe0f", "‼\ufe0f", "☎\ufe0e",
		"葛\U000e0100城", "\u0600١", "a\u00a0b", "e\u0301", "שלום", "한글",
	} {
		require.Equal(t, text, screen.Clean(text))
	}
	// More than one is never how people write.
	require.Equal(t, `👩`+"\u200d"+`\u200d👩`, screen.Clean("👩\u200d\u200d👩"))
	require.Equal(t, `می`+"\u200c"+`\u200c\u200dخ`, screen.Clean("می\u200c\u200c\u200dخ"))
	require.Equal(t, `✔`+"\ufe0f"+`\ufe0f\ufe01`, screen.Clean("✔\ufe0f\ufe0f\ufe01"))
	require.Equal(t, `🏴\ue0067\ue007f`, screen.Clean("🏴\U000e0067\U000e007f"), "tags could say anything")
}

func TestLine(t *testing.T) {
	require.Equal(t, "a b c", screen.OneLine(" a\n b\tc ", 20))
	require.Equal(t, "abc", screen.OneLine("abcdef"[:3], 3))
	require.Equal(t, "ab…", screen.OneLine("abcdef", 3))
	require.Equal(t, "日…", screen.OneLine("日本語", 4))
	require.Equal(t, `\u001b[…`, screen.OneLine("\x1b[31mred", 8))
	require.Empty(t, screen.OneLine("abc", 0))
	for n := range 12 {
		require.LessOrEqual(t, screen.Columns(screen.OneLine("e\u0301日本x語", n)), n)
	}
}

func TestTheLineBelowTheText(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, func() int { return 20 })
	sent := func() string {
		defer out.Reset()
		return strings.NewReplacer("\r\x1b[2K", "⌫", "\x1b[2m", "", "\x1b[0m", "").Replace(out.String())
	}
	s.SetStatusLine("working\x1b[2J")
	require.Equal(t, `working\u001b[2J`, sent())
	s.Write([]byte("text\n")) //nolint:errcheck // a buffer takes everything
	require.Equal(t, "⌫text\n"+`working\u001b[2J`, sent())
	s.Write([]byte("begun")) //nolint:errcheck // likewise
	require.Equal(t, "⌫begun", sent(), "it is not there while a line has not ended")
	s.SetStatusLine("other")
	require.Empty(t, sent())
	s.EndLine()
	require.Equal(t, "\nother", sent())
	s.Hold()
	require.Equal(t, "⌫", sent())
	s.SetStatusLine("more")
	s.Write([]byte("later\n")) //nolint:errcheck // likewise
	require.Empty(t, sent())
	s.Release()
	require.Equal(t, "later\nmore", sent())
	s.SetStatusLine("")
	require.Equal(t, "⌫", sent())
}
