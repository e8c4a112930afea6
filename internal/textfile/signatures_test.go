package textfile_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// TestShortHeads: the beginning of a binary file is binary, even if it is too
// short to contain a NUL.
func TestShortHeads(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte("text"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for name, head := range map[string]string{
		"PNG image":              "\x89PNG\r\n\x1a\n",
		"PNG image, more":        "\x89PNG\r\n\x1a\nIHDR and words",
		"gzip data":              "\x1f\x8b\x08\x08abcdefname.txt",
		"gzip data, real":        strings.ReplaceAll(zipped.String(), "\x00", "\x01"),
		"zip archive":            "PK\x03\x04\x14\x08\x08name of a file in a long enough text to have few of them",
		"ELF program":            "\x7fELF\x02\x01\x01 and some words that follow it",
		"JPEG image":             "\xff\xd8\xff\xe1\x10\x10Exif",
		"GIF image":              "GIF89a\x11\x01\x11\x01\xf7 !",
		"GIF image, high":        "GIF87a\xc8\xc8\xc8\xc8\xf7abc",
		"bzip2 data":             "BZh91AY&SY\xd8\x72\x01\x2f",
		"zstd data":              "\x28\xb5\x2f\xfd\x24\x05words",
		"xz data":                "\xfd7zXZ\x00",
		"7-zip archive":          "7z\xbc\xaf\x27\x1cwords and more words",
		"Matroska or WebM video": "\x1aE\xdf\xa3words",
		"Python pickle":          "\x80\x04\x95words",
		"lz4 data":               "\x04\x22\x4d\x18words and words",
		"LLVM bitcode":           "BC\xc0\xdewords and words",
	} {
		require.True(t, textfile.Detect([]byte(head)).Binary, name)
		kind, _, _ := strings.Cut(name, ",")
		require.True(t, strings.HasPrefix(textfile.BinaryType([]byte(head)), kind), "%s: %s", name, textfile.BinaryType([]byte(head)))
		index, err := textfile.Scan(t.Context(), strings.NewReader(head), int64(len(head)), textfile.Options{})
		require.NoError(t, err)
		require.True(t, index.Binary, name)
	}
}

// TestWordsThatTextBeginsWith: text that begins like a signature made of
// letters stays text.
func TestWordsThatTextBeginsWith(t *testing.T) {
	for _, text := range []string{
		"PK", "PK is a prefix\n", "GIF89a is a format\n", "GIF89a\n\tblocks\r\n", "BZh91AY&SY begins bzip2 files", "MZ", "ID3 tags: é", "RIFF", "%PDF-1.7\n",
		"7z", "Rar!", "ELF", "PNG\r\n", "SQLite format 3", "OggS é", "\x1b[1mbold\x1b[0m", "GIF89a caf\xc3", "MZ;Gr\xf6\xdfe;Stra\xdfe\n", "II*", "(µ/ý",
		"BZh is short for B\xfccher und Zeitschriften\n",
	} {
		require.False(t, textfile.HasBinarySignature([]byte(text)), text)
		require.False(t, textfile.Detect([]byte(text)).Binary, text)
	}
}

// FuzzSigned: UTF-8 text without control characters is never binary, whatever
// its beginning.
func FuzzSigned(f *testing.F) {
	for _, seed := range []string{"PK", "GIF89a is a format", "\x89PNG\r\n\x1a\n", "BZh91AY&SY\xc3\xa9", "MZ\x90", "é", "\x1f\x8b"} {
		f.Add(seed, 0)
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		if cut > 0 && cut < len(text) {
			text = text[:cut] // possibly inside a character
		}
		whole := text
		for n := 1; n < utf8.UTFMax && n < len(text) && !utf8.ValidString(whole); n++ {
			whole = text[:len(text)-n]
		}
		plain := utf8.ValidString(whole) && (whole == text || !utf8.FullRuneInString(text[len(whole):])) &&
			strings.IndexFunc(whole, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\f", r) }) < 0
		if !plain {
			return
		}
		if textfile.HasBinarySignature([]byte(text)) {
			t.Fatalf("%q is text", text)
		}
		if utf8.ValidString(text) && textfile.Detect([]byte(text)).Binary {
			t.Fatalf("%q is detected as binary", text)
		}
	})
}
