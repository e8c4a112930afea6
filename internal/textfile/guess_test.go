package textfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// Proofs hold only for bytes that are the same in every encoding that the file
// may have.
func TestGuess(t *testing.T) {
	for name, c := range map[string]struct {
		encoding       textfile.Encoding // of the file
		text, old, new string
		proven         bool
	}{
		"big5, other characters":      {"big5", "# 設定檔案\nname = old\n", "old", "日本", false},
		"big5, ascii":                 {"big5", "# 設定檔案\nname = old\n", "old", "new", true},
		"big5, beside characters":     {"big5", "# 設定檔案 x\nname = old\n", " x", " y", true},
		"shift-jis, ascii":            {"shift-jis", "# 日本語のテキストです。\nname = old\n", "old", "new", true},
		"shift-jis, characters":       {"shift-jis", "# 日本語のテキストです。\nname = old\n", "old", "表示", false},
		"latin-1, a letter":           {"latin-1", "# café, thé\nname = old\n", "old", "été", true},
		"latin-1, ascii":              {"latin-1", "# café, thé\nname = old\n", "old", "new", true},
		"windows-1251":                {"windows-1251", "# Привет, мир\nname = old\n", "old", "é", false},
		"windows-1251, ascii":         {"windows-1251", "# Привет, мир\nname = old\n", "old", "new", true},
		"cp850, a letter":             {"cp850", "# café, thé\nname = old\n", "old", "é", false},
		"euc-kr":                      {"euc-kr", "# 안녕하세요 세계\nname = old\n", "old", "日本", false},
		"gbk, characters":             {"gbk", "# 你好，世界！这是一个测试文件\nname = old\n", "old", "中文", false},
		"gbk, characters are removed": {"gbk", "# 你好，世界！这是一个测试文件\nname = old\n", "世界", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := c.encoding.Encode(c.text)
			require.NoError(t, err)
			format := textfile.Detect(raw)
			require.True(t, format.Guessed)
			require.Contains(t, format.String(), " (guessed)")
			g := textfile.NewGuess(raw, format.Encoding)
			t.Logf("%s: %s", format, g)
			old, err := c.encoding.Encode(c.old)
			require.NoError(t, err)
			at := strings.Index(string(raw), string(old))
			require.Positive(t, at)
			require.Equal(t, c.proven, g.EditIsUnambiguous(at, at+len(old), c.new))
		})
	}
}

// A text for the whole file may repeat characters of the file.
func TestGuessOfAWholeText(t *testing.T) {
	text := "# 設定檔案\nname = old\n"
	raw, err := textfile.Encoding("big5").Encode(text)
	require.NoError(t, err)
	e := textfile.Detect(raw).Encoding
	g := textfile.NewGuess(raw, e)
	old := e.Decode(raw)
	require.NotEqual(t, text, old)
	require.True(t, g.TextIsUnambiguous(old, strings.Replace(old, "old", "new", 1)))
	require.True(t, g.TextIsUnambiguous(old, "nothing but ASCII\n"))
	require.False(t, g.TextIsUnambiguous(old, old+"日本\n"))
}

// Text in UTF-8 or UTF-16, or without any byte above ASCII, is not a guess.
func TestNoGuess(t *testing.T) {
	for _, raw := range []string{"", "plain\n", "café\n", "\xff\xfea\x00\n\x00", "a\x00b\x00\n\x00c\x00d\x00"} {
		require.False(t, textfile.Detect([]byte(raw)).Guessed, "%q", raw)
	}
}
