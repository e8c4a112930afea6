package textfile

import (
	"bytes"
	"io"

	"golang.org/x/text/transform"
)

// GuessWide returns the encoding of a file that begins with head if it is
// UTF-16 without a byte order mark, and "" otherwise. Scan gives the same
// result for nearly every file; GuessWide reads only a little of a binary file.
func GuessWide(head []byte) Encoding {
	const quick = 512
	head = head[:min(len(head), HeadSize)&^1]
	if bytes.Count(head, []byte{0}) < 2 { // a single NUL may occur anywhere by chance
		return ""
	}
	for i := 0; i < len(head); i += 2 {
		if head[i]|head[i+1] == 0 { // no text contains U+0000
			return ""
		}
	}
	if first := head[:min(len(head), quick)]; !mostlyTextUnits(first, 0) && !mostlyTextUnits(first, 1) {
		return ""
	}
	if len(head) > quick && guessWide(head[:quick]) == "" {
		return ""
	}
	return guessWide(head)
}

// mostlyTextUnits reports whether most UTF-16 units of b are in the Unicode blocks
// that most text uses. Their high bytes are at odd offsets or, if big is 1, at
// even ones. A third of random units are not in these blocks.
func mostlyTextUnits(b []byte, big int) bool {
	usual := 0
	for i := 1 - big; i < len(b); i += 2 {
		switch hi := b[i]; {
		case hi < 0x0F, hi >= 0x20 && hi < 0x28, hi == 0x30, hi >= 0x4E && hi < 0xA0, hi >= 0xAC && hi < 0xE0, hi >= 0xFE:
			usual++
		}
	}
	return usual*10 >= len(b)/2*8
}

// ASCII reports whether b has no byte above 0x7F.
func ASCII(b []byte) bool {
	n := ascii(b)
	for _, c := range b[n:] {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// NewReader returns a reader that decodes r to UTF-8. Invalid bytes become
// U+FFFD.
func (e Encoding) NewReader(r io.Reader) io.Reader {
	if c := codec(e); c != nil {
		return transform.NewReader(r, c.NewDecoder())
	}
	return r
}
