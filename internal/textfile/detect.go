package textfile

import "bytes"

// HeadSize is the number of bytes, at a file's beginning, in which Detect and
// Scan look for signs of a binary file or UTF-16.
const HeadSize = 64 << 10

// Detect returns the format of data: a whole file, or its beginning, which may
// end inside a character.
func Detect(data []byte) Format {
	e, bom := detectBOM(data)
	if bom == 0 {
		e = guessUTF16(data[:min(len(data), HeadSize)])
	}
	j := detection{head: data[:min(len(data), HeadSize)], size: int64(len(data)), encoding: e, bom: bom}
	if e.IsUTF16() {
		j.byteFacts = computeUTF16Facts(data, 0, len(data), e)
	} else {
		j.byteFacts = computeFacts(data, 0, len(data))
		j.sample = data[j.sampleAt:min(j.sampleAt+sampleLimit, len(data))]
	}
	return j.format()
}

// The byte order marks.
var (
	bomUTF8    = []byte{0xEF, 0xBB, 0xBF}
	bomUTF16LE = []byte{0xFF, 0xFE}
	bomUTF16BE = []byte{0xFE, 0xFF}
	bomUTF32LE = []byte{0xFF, 0xFE, 0, 0}
)

// detectBOM returns the encoding that a byte order mark at the start of head
// means, and the mark's length. It returns "" and 0 without a mark.
func detectBOM(head []byte) (encoding Encoding, size int) {
	switch {
	case bytes.HasPrefix(head, bomUTF8):
		return UTF8, len(bomUTF8)
	case bytes.HasPrefix(head, bomUTF32LE) && len(head)%4 == 0:
		return "", 0 // UTF-32, which nobody writes; not UTF-16 full of NULs
	case bytes.HasPrefix(head, bomUTF16LE):
		return UTF16LE, len(bomUTF16LE)
	case bytes.HasPrefix(head, bomUTF16BE):
		return UTF16BE, len(bomUTF16BE)
	}
	return "", 0
}

// detection holds the data that determines a file's format.
type detection struct {
	head      []byte
	encoding  Encoding // from the byte order mark or guessUTF16; "" if unknown
	bom       int
	size      int64
	byteFacts        // of the whole file
	sample    []byte // text that is not UTF-8, if any
}

// format returns the format that the data determines.
func (j detection) format() Format {
	format := Format{Encoding: j.encoding, BOM: j.bom, Ending: endingOf(j.byteFacts), NUL: j.nul}
	switch {
	case j.encoding.IsUTF16():
		return format
	case j.isBinary():
		return Format{Binary: true, Ending: None}
	case j.invalid == 0:
		format.Encoding = UTF8
	case j.bom > 0 || j.isMostlyUTF8():
		format.Encoding, format.Invalid = UTF8, j.invalid
	default:
		format.Encoding, format.Guessed = guessLegacy(j.sample), true
		if format.Encoding == "" {
			return Format{Binary: true, Ending: None}
		}
	}
	return format
}

// isMostlyUTF8 reports whether the text is UTF-8, possibly damaged, instead of
// another encoding: there are few invalid bytes compared with valid sequences,
// or only a character is cut off at the end.
func (j detection) isMostlyUTF8() bool {
	return j.multibyte >= 4*j.invalid || j.multibyte > 0 && j.invalid == j.cutOff
}

// endingOf returns the kind of line endings.
func endingOf(f byteFacts) Ending {
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

// isBinary reports whether the file is binary, by its signature, NULs and
// control characters. A few NULs after the beginning of a long text, such as a
// crash leaves in a log, do not make it binary.
func (j detection) isBinary() bool {
	if HasBinarySignature(j.head) || bytes.IndexByte(j.head, 0) >= 0 || int64(j.nul)*1000 > j.size {
		return true
	}
	controls := 0
	for _, c := range j.head {
		if c < ' ' && !isTextControl(c) {
			controls++
		}
	}
	if j.invalid == 0 || j.isMostlyUTF8() {
		return controls*10 > len(j.head)*3 && controls > 1
	}
	return controls*100 > len(j.head)
}

// isTextControl reports whether text often contains the control character c:
// white space, bell, backspace, escape, or the end-of-file mark of DOS.
func isTextControl(c byte) bool { return c >= '\a' && c <= '\r' || c == 0x1B || c == 0x1A }
