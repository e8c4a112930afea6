package textfile

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
)

// HeadSize is the number of bytes at a file's beginning that Detect and Scan
// examine for signs of a binary file or UTF-16.
const HeadSize = 64 << 10

// Ending is the kind of a file's line endings.
type Ending string

// The line endings. A file that consists of one line without an ending has
// None. CR is reported only for files without any line feed; in other files, a
// lone carriage return is a character of its line.
const (
	None  Ending = "none"
	LF    Ending = "lf"
	CRLF  Ending = "crlf"
	CR    Ending = "cr"
	Mixed Ending = "mixed" // both lf and crlf
)

// Format describes how a file's text is encoded.
type Format struct {
	Encoding Encoding // "" for a binary file
	BOM      int      // length of the byte order mark; 0: none
	Ending   Ending
	Binary   bool
	Guessed  bool // Encoding is the likeliest of several, and none is certain
	Invalid  int  // number of bytes that are not valid; UTF-8 only
	NUL      int  // number of NUL characters in the text
}

// String returns the format as shown in headers: "utf-8 lf", "utf-8 bom crlf",
// "gbk (guessed) lf".
func (f Format) String() string {
	if f.Binary {
		return "binary"
	}
	parts := []string{string(f.Encoding)}
	if f.Guessed {
		parts = append(parts, "(guessed)")
	}
	if f.BOM > 0 {
		parts = append(parts, "bom")
	}
	if f.Ending != None {
		parts = append(parts, string(f.Ending))
	}
	return strings.Join(parts, " ")
}

// Detect returns the format of bytes in memory: a whole file, or its beginning,
// which may end inside a character.
func Detect(data []byte) Format {
	e, bom := bomOf(data)
	if bom == 0 {
		e = guessWide(data[:min(len(data), HeadSize)])
	}
	j := detection{head: data[:min(len(data), HeadSize)], size: int64(len(data)), encoding: e, bom: bom}
	if e.Wide() {
		j.facts = computeWideFacts(data, 0, len(data), e)
	} else {
		j.facts = computeFacts(data, 0, len(data))
		j.sample = data[j.first:min(j.first+sampleLimit, len(data))]
	}
	return j.format()
}

// detection is the data that determines a file's format.
type detection struct {
	head     []byte
	encoding Encoding // from the byte order mark or guessWide; "" if unknown
	bom      int
	size     int64
	facts           // of the whole file
	sample   []byte // text that is not UTF-8, if any
}

func (j detection) format() Format {
	format := Format{Encoding: j.encoding, BOM: j.bom, Ending: endingOf(j.facts), NUL: j.nul}
	switch {
	case j.encoding.Wide():
		return format
	case j.binary():
		return Format{Binary: true, Ending: None}
	case j.invalid == 0:
		format.Encoding = UTF8
	case j.bom > 0 || j.mostlyUTF8():
		format.Encoding, format.Invalid = UTF8, j.invalid
	default:
		format.Encoding, format.Guessed = guessLegacy(j.sample), true
		if format.Encoding == "" {
			return Format{Binary: true, Ending: None}
		}
	}
	return format
}

// mostlyUTF8 reports whether the text is UTF-8, possibly damaged, and not in
// another encoding: invalid bytes are few compared with valid sequences, or
// only a character is cut off at the end.
func (j detection) mostlyUTF8() bool {
	return j.multi >= 4*j.invalid || j.multi > 0 && j.invalid == j.cut
}

func endingOf(f facts) Ending {
	switch {
	case f.lf == 0 && f.cr > 0:
		return CR
	case f.lf == 0:
		return None
	case f.crlf == 0:
		return LF
	case f.crlf == f.lf:
		return CRLF
	}
	return Mixed
}

// binary decides by signatures, NULs and control characters. A few NULs after
// the beginning of a long text, such as a crash leaves in a log, do not make it
// binary.
func (j detection) binary() bool {
	if HasBinarySignature(j.head) || bytes.IndexByte(j.head, 0) >= 0 || int64(j.nul)*1000 > j.size {
		return true
	}
	controls := 0
	for _, c := range j.head {
		if c < ' ' && !plainControl(c) {
			controls++
		}
	}
	if j.invalid == 0 || j.mostlyUTF8() {
		return controls*10 > len(j.head)*3 && controls > 1
	}
	return controls*100 > len(j.head)
}

// plainControl reports whether the control character c is common in text: white
// space, bell, backspace, escape, the end-of-file mark of DOS.
func plainControl(c byte) bool { return c >= '\a' && c <= '\r' || c == 0x1B || c == 0x1A }

// guessWide recognises UTF-16 without a byte order mark: in one byte order the
// units are plausible text, in the other they are not. It returns "" if the
// text is not UTF-16.
func guessWide(head []byte) Encoding {
	head = head[:len(head)&^1]
	if len(head) < 4 || bytes.IndexByte(head, 0) < 0 {
		// Text without any blank, digit or line ending has no NUL; it cannot be
		// distinguished from other encodings.
		return ""
	}
	little, big := wideScore(head, false), wideScore(head, true)
	switch {
	case little >= 0.9 && little > big:
		return UTF16LE
	case big >= 0.9 && big > little:
		return UTF16BE
	}
	return ""
}

// wideScore returns the fraction of the UTF-16 units of b that is plausible
// text; 0 if a unit is impossible.
func wideScore(b []byte, bigEndian bool) float64 {
	units := make([]uint16, len(b)/2)
	for i := range units {
		lo, hi := b[2*i], b[2*i+1]
		if bigEndian {
			lo, hi = hi, lo
		}
		units[i] = uint16(hi)<<8 | uint16(lo)
	}
	if last := units[len(units)-1]; utf16.IsSurrogate(rune(last)) {
		units = units[:len(units)-1] // cut inside a pair
	}
	good, basic, pairs, total := 0.0, 0, 0, 0
	blocks := map[uint16]bool{}
	for _, r := range utf16.Decode(units) {
		total++
		switch {
		case r == 0 || r == unicode.ReplacementChar || r == 0xFFFE || r == 0xFFFF:
			return 0
		case r < ' ' && !plainControl(byte(r)) || r >= 0x7F && r < 0xA0:
			good -= 2
		case r < 0x7F:
			good, basic = good+1, basic+1
		case common(r):
			good++
			blocks[uint16(r>>8)] = true
			if printable(byte(r)) && printable(byte(r>>8)) {
				pairs++
			}
		case unicode.IsGraphic(r):
			good += 0.3
		}
	}
	if total == 0 || basic == 0 {
		return 0
	}
	// Two ASCII letters look like a Han character; a text contains few such
	// pairs by chance.
	if pairs*2 > total-basic && pairs*2 > basic {
		return 0
	}
	// The other byte order turns ASCII into U+2000, U+0A00, U+6100 …: few real
	// texts have as many Unicode blocks as characters.
	if basic*4 < total && len(blocks)*3 > total*2 && total > 8 {
		good /= 2
	}
	return good / float64(total)
}

func printable(c byte) bool { return c >= ' ' && c < 0x7F }

// common reports whether r belongs to a widely used script or set of symbols.
func common(r rune) bool {
	switch {
	case r < 0x250, r >= 0x370 && r < 0x700, r >= 0x900 && r < 0xE80:
		return unicode.IsGraphic(r)
	case r >= 0x2010 && r < 0x2040, r >= 0x2190 && r < 0x2200, r >= 0x2500 && r < 0x2700, r == 0x20AC:
		return true
	case r >= 0x3000 && r < 0x3100, r >= 0x4E00 && r < 0xA000, r >= 0xAC00 && r < 0xD7A4, r >= 0xFF00 && r < 0xFFF0:
		return unicode.IsGraphic(r)
	case r >= 0x1F300 && r < 0x1FB00:
		return true
	}
	return false
}
