package textfile

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// signature is a text with which all files of a format begin, and the format's
// name.
type signature struct{ magic, name string }

// signatures contain a byte that no text contains, or with which no text
// begins, in any encoding that Detect recognises: a file that begins with a
// signature is binary.
var signatures = []signature{
	{"\x89PNG\r\n\x1a\n", "PNG image"}, {"\x8aMNG\r\n\x1a\n", "MNG animation"}, {"\x8bJNG\r\n\x1a\n", "JNG image"}, {"\xff\xd8\xff", "JPEG image"},
	{"\x1f\x8b", "gzip data"}, {"\x1f\x9d", "compress data"}, {"\x1f\xa0", "compress data"}, {"\xfd7zXZ\x00", "xz data"}, {"\x28\xb5\x2f\xfd", "zstd data"},
	{"\x04\x22\x4d\x18", "lz4 data"}, {"LZIP\x01", "lzip data"}, {"7z\xbc\xaf\x27\x1c", "7-zip archive"}, {"Rar!\x1a\x07", "rar archive"},
	{"PK\x03\x04", "zip archive (also docx, xlsx, jar)"}, {"PK\x05\x06", "empty zip archive"}, {"PK\x07\x08", "split zip archive"},
	{"\x7fELF", "ELF program or library"}, {"\x00asm", "WebAssembly module"}, {"BC\xc0\xde", "LLVM bitcode"}, {"\x1bLua", "Lua bytecode"},
	{"SQLite format 3\x00", "SQLite database"}, {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office document"}, {"\x1aE\xdf\xa3", "Matroska or WebM video"},
	{"\x00\x01\x00\x00\x00", "TrueType font"}, {"\x00\x00\x01\x00", "Windows icon"}, {"II*\x00", "TIFF image"}, {"MM\x00*", "TIFF image"},
	{"\x80\x02", "Python pickle"}, {"\x80\x03", "Python pickle"}, {"\x80\x04\x95", "Python pickle"}, {"\x80\x05\x95", "Python pickle"},
	{"\x89HDF\r\n\x1a\n", "HDF5 data"}, {"\x93NUMPY", "NumPy array"}, {"\xed\xab\xee\xdb", "RPM package"},
}

// textSignatures are signatures that may also be the beginning of a text.
var textSignatures = []signature{
	{"GIF87a", "GIF image"}, {"GIF89a", "GIF image"}, {"BZh", "bzip2 data"}, {"MZ", "Windows program"}, {"!<arch>\n", "ar archive"},
	{"OggS", "Ogg media"}, {"fLaC", "FLAC audio"}, {"ID3", "MP3 audio"}, {"wOFF", "WOFF font"}, {"wOF2", "WOFF2 font"}, {"DIRC", "git index"},
	{"PAR1", "Parquet data"}, {"PACK", "git pack"},
	{"\xcf\xfa\xed\xfe", "Mach-O program"}, {"\xce\xfa\xed\xfe", "Mach-O program"}, {"\xca\xfe\xba\xbe", "Java class or universal Mach-O"},
	{"\xff\xfe\x00\x00", "UTF-32 text"}, {"\x00\x00\xfe\xff", "UTF-32 text"},
}

// textCheckBytes is the number of bytes after a signature of letters that are
// checked to be text.
const textCheckBytes = 64

// HasBinarySignature reports whether head, the beginning of a file, has a
// signature of a binary format, even if it has no NUL. It returns false for
// UTF-8 text without control characters.
func HasBinarySignature(head []byte) bool {
	if len(head) == 0 {
		return false
	}
	for _, s := range signatures {
		if head[0] == s.magic[0] && bytes.HasPrefix(head, []byte(s.magic)) {
			return true
		}
	}
	// Only these words are long enough. Files of the other formats soon have a
	// NUL.
	gif := bytes.HasPrefix(head, []byte("GIF87a")) || bytes.HasPrefix(head, []byte("GIF89a"))
	bzip2 := len(head) > 10 && bytes.HasPrefix(head, []byte("BZh")) && string(head[4:10]) == "1AY&SY"
	return (gif || bzip2) && !isUTF8Text(head[:min(len(head), textCheckBytes)])
}

// isUTF8Text reports whether b is UTF-8, possibly cut inside a character,
// without control characters that text seldom has.
func isUTF8Text(b []byte) bool {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return !utf8.FullRune(b[i:])
		}
		if r == 0x7F || r < ' ' && !isTextControl(byte(r)) {
			return false
		}
		i += size
	}
	return true
}

// BinaryType returns the name of a binary file's format, by its beginning: "PNG
// image". For an unknown format it returns "data of unknown type".
func BinaryType(head []byte) string {
	for _, list := range [][]signature{signatures, textSignatures} {
		for _, s := range list {
			if bytes.HasPrefix(head, []byte(s.magic)) {
				return s.name
			}
		}
	}
	switch {
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return "tar archive"
	case len(head) > 12 && string(head[4:8]) == "ftyp":
		return "MP4 or other ISO media"
	case len(head) > 12 && string(head[:4]) == "RIFF":
		return "RIFF media (" + strings.Map(dotNonPrintable, string(head[8:12])) + ")"
	}
	return "data of unknown type"
}

// dotNonPrintable returns a dot for a character that is not printable ASCII.
func dotNonPrintable(r rune) rune {
	if r < ' ' || r > '~' {
		return '.'
	}
	return r
}
