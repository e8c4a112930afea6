package textfile_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

func encode(t testing.TB, e textfile.Encoding, text string) []byte {
	t.Helper()
	raw, err := e.Encode(text)
	require.NoError(t, err)
	return raw
}

const (
	japanese  = "# 設定ファイル\nこんにちは世界。日本語のテキストです。\nカタカナとひらがな、漢字を含む。\nprint(\"テスト\")\n"
	gbDecoder = "# 配置文件\n你好，世界！这是一个测试文件。\n中文字符和英文 mixed text 混合。\nprintf(\"测试\");\n"
	french    = "# été à l'école\nÇa va bien, garçon ? Où est le café naïf ?\nL'œuvre coûte 3 €… « voilà »\n"
	latin     = "# été à l'école\nÇa va bien, garçon ? Où est le café naïf ?\n« voilà » 25 °C, § 7\n"
	german    = "Größe: äöü ÄÖÜ ß\nDie Straße führt über die Brücke.\n"
	spanish   = "¿Dónde está el niño? ¡Mañana!\n"
	swedish   = "Åke på ön såg en älg.\n"
	quotes    = "it\u2019s \u201cquoted\u201d \u2013 don\u2019t\n"
)

func TestDetectEncodings(t *testing.T) {
	for _, c := range []struct {
		encoding textfile.Encoding
		text     string
	}{
		{textfile.ShiftJIS, japanese}, {textfile.GBK, gbDecoder},
		{textfile.Latin1, latin}, {textfile.Latin1, german}, {textfile.Latin1, spanish}, {textfile.Latin1, swedish},
		{textfile.Windows1252, french}, {textfile.Windows1252, quotes},
		{textfile.UTF8, japanese}, {textfile.UTF8, gbDecoder}, {textfile.UTF8, french},
		{textfile.UTF16LE, japanese}, {textfile.UTF16LE, gbDecoder}, {textfile.UTF16LE, french}, {textfile.UTF16LE, "plain\n"},
		{textfile.UTF16BE, japanese}, {textfile.UTF16BE, gbDecoder}, {textfile.UTF16BE, french}, {textfile.UTF16BE, "plain\n"},
	} {
		raw := encode(t, c.encoding, c.text)
		format := textfile.Detect(raw)
		require.Equal(t, c.encoding, format.Encoding, "%q", c.text)
		require.Equal(t, textfile.LF, format.Ending, "%q", c.text)
		require.Equal(t, c.text, format.Encoding.Decode(raw))
		// The same text with CRLF endings, and each line alone.
		dos := textfile.Detect(encode(t, c.encoding, strings.ReplaceAll(c.text, "\n", "\r\n")))
		require.Equal(t, textfile.CRLF, dos.Ending, "%q", c.text)
		require.Equal(t, c.encoding, dos.Encoding, "%q", c.text)
	}
}

func TestDetectShortSamples(t *testing.T) {
	for _, c := range []struct {
		encoding textfile.Encoding
		text     string
	}{
		{textfile.Latin1, "café"}, {textfile.Latin1, "café\n"}, {textfile.Latin1, "naïve"}, {textfile.Latin1, "résumé"},
		{textfile.Latin1, "Müller"}, {textfile.Latin1, "Grüße"}, {textfile.Latin1, "señor"}, {textfile.Latin1, "à"},
		{textfile.Latin1, "20 °C"}, {textfile.Latin1, "© 2026"}, {textfile.Latin1, "für"}, {textfile.Latin1, "déjà vu"},
		{textfile.Windows1252, "don\u2019t"}, {textfile.Windows1252, "\u201chi\u201d"}, {textfile.Windows1252, "5 €"},
		{textfile.GBK, "你好"}, {textfile.GBK, "中文"}, {textfile.GBK, "测试\n"}, {textfile.GBK, "a = 中 // 注释"}, {textfile.GBK, "你好，世界"},
		{textfile.ShiftJIS, "日本"}, {textfile.ShiftJIS, "こんにちは"}, {textfile.ShiftJIS, "テスト\n"}, {textfile.ShiftJIS, "// 日本語"},
		{textfile.ShiftJIS, "表示"}, {textfile.ShiftJIS, "Windows版"},
		{textfile.UTF8, "é"}, {textfile.UTF8, "你"}, {textfile.UTF8, "日本"}, {textfile.UTF8, ""}, {textfile.UTF8, "a"},
		{textfile.UTF16LE, "hi"}, {textfile.UTF16BE, "hi"}, {textfile.UTF16LE, "a中b\n"}, {textfile.UTF16BE, "中文\n"},
	} {
		require.Equal(t, c.encoding, textfile.Detect(encode(t, c.encoding, c.text)).Encoding, "%q", c.text)
	}
}

// TestDetectCutSamples cuts text after every byte: the beginning of a file must
// give the same answer as the whole file.
func TestDetectCutSamples(t *testing.T) {
	for _, c := range []struct {
		encoding textfile.Encoding
		text     string
	}{
		{textfile.ShiftJIS, japanese}, {textfile.GBK, gbDecoder}, {textfile.UTF8, japanese}, {textfile.UTF8, gbDecoder},
		{textfile.UTF16LE, gbDecoder}, {textfile.UTF16BE, japanese}, {textfile.UTF16LE, french}, {textfile.Latin1, latin},
	} {
		raw := encode(t, c.encoding, c.text)
		for cut := 20; cut < len(raw); cut++ {
			require.Equal(t, c.encoding, textfile.Detect(raw[:cut]).Encoding, "%s cut at %d", c.encoding, cut)
		}
	}
}

func TestDetectBinary(t *testing.T) {
	random := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for name, data := range map[string][]byte{
		"elf":         []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00>\x00"),
		"text NUL":    []byte("text\x00binary"),
		"NUL":         {0},
		"NULs":        make([]byte, 100),
		"random":      random,
		"gzip":        []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4a\x06\x00"),
		"utf-32":      []byte("\xff\xfe\x00\x00a\x00\x00\x00b\x00\x00\x00"),
		"small ints":  {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0},
		"string list": []byte("alpha\x00beta\x00gamma\x00delta\x00epsilon\x00"),
		"random 40":   random[:40],
	} {
		require.True(t, textfile.Detect(data).Binary, name)
	}
	require.False(t, textfile.Detect([]byte("\x1b[31mred\x1b[0m\n\x1b[32mgreen\x1b[0m\n")).Binary, "colours")
	require.False(t, textfile.Detect([]byte("progress\b\b\b done\a\f\n")).Binary)
}

func TestDetectMarksAndEndings(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"\xef\xbb\xbfa\n", "utf-8 bom lf"},
		{"\xef\xbb\xbf", "utf-8 bom"},
		{"\xff\xfea\x00\r\x00\n\x00", "utf-16le bom crlf"},
		{"\xfe\xff\x00a\x00\n", "utf-16be bom lf"},
		{"a\r\nb\nc", "utf-8 mixed"},
		{"a\rb\r", "utf-8 cr"},
		{"a\rb\n", "utf-8 lf"},
		{"a", "utf-8"},
		{"a\r\n\r\n", "utf-8 crlf"},
		{"\x00", "binary"},
	} {
		require.Equal(t, c.want, textfile.Detect([]byte(c.raw)).String(), "%q", c.raw)
	}
}

// TestLateEncoding: the first megabytes of a file do not determine the encoding
// of the rest.
func TestLateEncoding(t *testing.T) {
	plain := bytes.Repeat([]byte("2026-11-21 plain ASCII log line number something\n"), 60_000)
	for _, c := range []struct {
		encoding textfile.Encoding
		text     string
	}{
		{textfile.Latin1, latin}, {textfile.UTF8, japanese}, {textfile.ShiftJIS, japanese}, {textfile.GBK, gbDecoder},
	} {
		data := append(bytes.Clone(plain), encode(t, c.encoding, strings.Repeat(c.text, 20))...)
		x, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{})
		require.NoError(t, err)
		require.Equal(t, c.encoding, x.Encoding)
		require.Equal(t, c.encoding, textfile.Detect(data).Encoding)
	}
	// Chinese without a single blank over several chunks: samples must not
	// start inside a character.
	solid := encode(t, textfile.GBK, strings.Repeat("的一是不了在人有我他这中大来上国个到说们为子和你地出道", 30_000))
	solid = append([]byte("x"), solid...)
	x, err := textfile.Scan(context.Background(), bytes.NewReader(solid), int64(len(solid)), textfile.Options{})
	require.NoError(t, err)
	require.Equal(t, textfile.GBK, x.Encoding)
}

func TestDamagedUTF8StaysUTF8(t *testing.T) {
	data := []byte(strings.Repeat("naïve café 日本\n", 50) + "broken \xe9 byte\n")
	format := textfile.Detect(data)
	require.Equal(t, textfile.UTF8, format.Encoding)
	require.Equal(t, 1, format.Invalid)
	require.Contains(t, format.Encoding.Decode(data), "broken \uFFFD byte")
}

func TestFewLateNULsAreText(t *testing.T) {
	data := append(bytes.Repeat([]byte("a log line\n"), 20_000), []byte("torn\x00\x00\x00line\n")...)
	format := textfile.Detect(data)
	require.False(t, format.Binary)
	require.Equal(t, 3, format.NUL)
}

func TestParseEncoding(t *testing.T) {
	for given, want := range map[string]textfile.Encoding{
		"UTF-8": textfile.UTF8, "utf8": textfile.UTF8, "Latin1": textfile.Latin1, "ISO-8859-1": textfile.Latin1, "latin-1": textfile.Latin1,
		"cp1252": textfile.Windows1252, "Windows-1252": textfile.Windows1252, "Shift_JIS": textfile.ShiftJIS, "sjis": textfile.ShiftJIS,
		"SHIFT-JIS": textfile.ShiftJIS, "GBK": textfile.GBK, "gb2312": textfile.GBK, "GB18030": textfile.GB18030, "utf-16": textfile.UTF16LE,
		"UTF-16BE": textfile.UTF16BE, "euc_jp": "euc-jp", "cp1251": "windows-1251", "KOI8-R": "koi8-r",
	} {
		got, err := textfile.ParseEncoding(given)
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
	}
	_, err := textfile.ParseEncoding("klingon")
	require.ErrorContains(t, err, "klingon")
	for _, name := range textfile.EncodingNames() {
		e, err := textfile.ParseEncoding(name)
		require.NoError(t, err)
		require.Equal(t, "plain", e.Decode(encode(t, e, "plain")))
	}
}

func TestEncodeRefusesWhatDoesNotFit(t *testing.T) {
	for _, e := range []textfile.Encoding{textfile.Latin1, textfile.Windows1252, textfile.ShiftJIS, textfile.GBK} {
		_, err := e.Encode("ok then \U0001F600")
		require.ErrorContains(t, err, "U+1F600", e)
	}
	_, err := textfile.UTF8.Encode("\xff")
	require.Error(t, err)
}

func FuzzDetect(f *testing.F) {
	for _, e := range []textfile.Encoding{textfile.UTF8, textfile.UTF16LE, textfile.UTF16BE} {
		f.Add(encode(f, e, japanese))
	}
	f.Add(encode(f, textfile.GBK, gbDecoder))
	f.Add(encode(f, textfile.ShiftJIS, japanese))
	f.Add([]byte("\xff\xfe\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		format := textfile.Detect(data)
		require.Equal(t, format.Binary, format.Encoding == "")
		for _, name := range textfile.EncodingNames() {
			textfile.Encoding(name).Decode(data)
		}
	})
}
