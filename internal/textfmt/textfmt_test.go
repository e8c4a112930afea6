package textfmt_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

func TestCount(t *testing.T) {
	for want, c := range map[string]struct {
		n    int
		what string
	}{
		"0 files":          {0, "file"},
		"1 file":           {1, "file"},
		"2 ignored files":  {2, "ignored file"},
		"1 directory":      {1, "directory"},
		"3 directories":    {3, "directory"},
		"1 match":          {1, "match"},
		"12 matches":       {12, "match"},
		"1 process":        {1, "process"},
		"2 processes":      {2, "process"},
		"2 NUL characters": {2, "NUL character"},
	} {
		require.Equal(t, want, textfmt.Count(c.n, c.what))
		require.Equal(t, want, textfmt.Count(int64(c.n), c.what))
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1.0k", 2149: "2.1k", 9949: "9.9k", 9950: "10k", 41_000: "41k",
		999_499: "999k", 999_500: "1.0M", 1_200_000: "1.2M",
	} {
		require.Equal(t, want, textfmt.Thousands(n))
	}
}

func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 400 * time.Millisecond: "0.4s", 48 * time.Second: "48s", 119 * time.Second: "119s",
		200*time.Second + 300*time.Millisecond: "3m20s",
	} {
		require.Equal(t, want, textfmt.ShortDuration(d))
	}
}

func TestLines(t *testing.T) {
	require.Equal(t, "line 3", textfmt.Lines(3, 3))
	require.Equal(t, "lines 3-5", textfmt.Lines(3, 5))
}

func TestNoCharacterIsCut(t *testing.T) {
	text := "aü€𝄞" + strings.Repeat("é", 3)
	for n := range len(text) + 3 {
		head, tail := textfmt.Head(text, n), textfmt.Tail(text, n)
		require.True(t, strings.HasPrefix(text, head))
		require.True(t, strings.HasSuffix(text, tail))
		for _, part := range []string{head, tail} {
			require.True(t, utf8.ValidString(part))
			require.LessOrEqual(t, len(part), n)
			require.Greater(t, len(part), min(n, len(text))-utf8.UTFMax)
		}
	}
	require.Empty(t, textfmt.Head("\x80\x80", 1), "what begins no character is none")
}
