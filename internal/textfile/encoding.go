package textfile

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Encoding is the name of a character encoding, as shown to users.
type Encoding string

// The encodings that Detect recognises. A caller can name others.
const (
	UTF8        Encoding = "utf-8"
	UTF16LE     Encoding = "utf-16le"
	UTF16BE     Encoding = "utf-16be"
	Latin1      Encoding = "latin-1"
	Windows1252 Encoding = "windows-1252"
	ShiftJIS    Encoding = "shift-jis"
	GBK         Encoding = "gbk"
	GB18030     Encoding = "gb18030"
)

// codecOf returns the codec of an encoding that x/text implements. It returns
// nil for UTF-8 and unknown names. In all of them except UTF-16, a line feed is
// the byte 0x0A, and no other character contains that byte. The line index
// relies on this; it handles UTF-16 separately.
func codecOf(e Encoding) encoding.Encoding {
	switch e {
	case UTF16LE:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case UTF16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case Latin1:
		return charmap.ISO8859_1
	case Windows1252:
		return charmap.Windows1252
	case ShiftJIS:
		return japanese.ShiftJIS
	case GBK:
		return simplifiedchinese.GBK
	case GB18030:
		return simplifiedchinese.GB18030
	case "euc-jp":
		return japanese.EUCJP
	case "euc-kr":
		return korean.EUCKR
	case "big5":
		return traditionalchinese.Big5
	case "windows-1250":
		return charmap.Windows1250
	case "windows-1251":
		return charmap.Windows1251
	case "windows-1253":
		return charmap.Windows1253
	case "windows-1254":
		return charmap.Windows1254
	case "iso-8859-2":
		return charmap.ISO8859_2
	case "iso-8859-15":
		return charmap.ISO8859_15
	case "koi8-r":
		return charmap.KOI8R
	case "cp437":
		return charmap.CodePage437
	case "cp850":
		return charmap.CodePage850
	case "macintosh":
		return charmap.Macintosh
	}
	return nil
}

// EncodingNames returns the names that ParseEncoding accepts, without their
// many other spellings.
func EncodingNames() []string {
	return []string{
		"utf-8", "utf-16le", "utf-16be", "latin-1", "windows-1252", "shift-jis", "gbk", "gb18030",
		"euc-jp", "euc-kr", "big5", "windows-1250", "windows-1251", "windows-1253", "windows-1254",
		"iso-8859-2", "iso-8859-15", "koi8-r", "cp437", "cp850", "macintosh",
	}
}

// ParseEncoding returns the encoding with this name, in any common spelling.
// "utf-16" means little-endian; a byte order mark overrides it when a file is
// read. For an unknown name it returns BAD_ENCODING.
func ParseEncoding(name string) (Encoding, error) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(strings.TrimSpace(name)))
	for _, known := range EncodingNames() {
		if plain == strings.ReplaceAll(known, "-", "") {
			return Encoding(known), nil
		}
	}
	switch plain {
	case "utf8bom", "utf8sig", "ascii", "usascii":
		return UTF8, nil
	case "utf16", "ucs2", "unicode", "utf16bom":
		return UTF16LE, nil
	case "iso88591", "l1", "88591", "ansix341968":
		return Latin1, nil
	case "cp1252", "1252", "win1252", "ansi":
		return Windows1252, nil
	case "sjis", "cp932", "ms932", "windows31j", "mskanji", "xsjis":
		return ShiftJIS, nil
	case "gb2312", "cp936", "ms936", "windows936", "euccn", "xgbk":
		return GBK, nil
	case "cp949", "uhc", "windows949", "ksc5601":
		return "euc-kr", nil
	case "cp950", "big5hkscs":
		return "big5", nil
	case "cp1250", "cp1251", "cp1253", "cp1254", "win1251":
		return Encoding("windows-" + plain[len(plain)-4:]), nil
	case "latin2", "l2":
		return "iso-8859-2", nil
	case "latin9", "l9":
		return "iso-8859-15", nil
	case "koi8r":
		return "koi8-r", nil
	case "ibm437":
		return "cp437", nil
	case "ibm850":
		return "cp850", nil
	case "mac", "macroman":
		return "macintosh", nil
	}
	return "", toolerr.New(toolerr.BadEncoding, "unknown encoding %q; use one of %s", name, strings.Join(EncodingNames(), ", "))
}

// IsUTF16 reports whether the encoding is UTF-16. Its units have two bytes, so
// lines cannot be found by searching for single bytes.
func (e Encoding) IsUTF16() bool { return e == UTF16LE || e == UTF16BE }

// Decode returns raw as UTF-8. Invalid bytes become U+FFFD. Bytes in an unknown
// encoding are read as Latin-1.
func (e Encoding) Decode(raw []byte) string {
	if e == UTF8 || e == "" {
		if utf8.Valid(raw) {
			return string(raw)
		}
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	c := codecOf(e)
	if c == nil {
		return Latin1.Decode(raw)
	}
	text, err := c.NewDecoder().Bytes(raw)
	if err != nil { // decoders replace invalid bytes instead of failing; keep the decoded part
		return Latin1.Decode(raw)
	}
	return string(text)
}

// Encode returns text in the encoding, without a byte order mark. It returns
// BAD_ENCODING, which names the character, if the encoding lacks a character,
// and also if text is not UTF-8 or the encoding is unknown.
func (e Encoding) Encode(text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, toolerr.New(toolerr.BadEncoding, "the text is not valid UTF-8")
	}
	if e == UTF8 || e == "" {
		return []byte(text), nil
	}
	c := codecOf(e)
	if c == nil {
		return nil, toolerr.New(toolerr.BadEncoding, "unknown encoding %q", string(e))
	}
	raw, err := c.NewEncoder().Bytes([]byte(text))
	if err == nil && e.Decode(raw) == text {
		return raw, nil
	}
	for _, r := range text {
		one, err := c.NewEncoder().Bytes([]byte(string(r)))
		if err != nil || e.Decode(one) != string(r) {
			return nil, toolerr.New(toolerr.BadEncoding, "%q (U+%04X) cannot be written in %s", string(r), r, e)
		}
	}
	return nil, toolerr.New(toolerr.BadEncoding, "the text cannot be written in %s without loss", e)
}

// NewReader returns a reader of r's text as UTF-8. Invalid bytes become U+FFFD.
// UTF-8, and bytes in an unknown encoding, are read unchanged.
func (e Encoding) NewReader(r io.Reader) io.Reader {
	if c := codecOf(e); c != nil {
		return transform.NewReader(r, c.NewDecoder())
	}
	return r
}
