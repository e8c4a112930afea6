package textfile

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// contextBytes is the number of bytes before and after a chunk that affect its
// facts: the rest of a UTF-8 sequence, or of a line ending in UTF-16.
const contextBytes = 4

// sampleSize is the size of a chunk's contribution to the sample from which an
// encoding is guessed, and sampleLimit the size of the whole sample, in bytes.
const (
	sampleSize  = 2 << 10
	sampleLimit = 32 * sampleSize
)

// byteFacts are the results of one pass over a range of bytes. Those of
// adjacent ranges can be added.
type byteFacts struct {
	hash      uint64 // of the bytes
	lf        int    // line feeds, including those of crlf
	crlf      int
	cr        int // carriage returns without a line feed after them
	nul       int
	multibyte int // valid UTF-8 sequences of more than one byte
	invalid   int // bytes that are not UTF-8
	cutOff    int // invalid bytes of a sequence that is cut off at the end
	sampleAt  int // offset in the buffer of a sample for guessLegacy
}

// computeFacts returns the facts of buf[from:to], in any encoding except
// UTF-16. It uses up to contextBytes bytes before and after the range to see
// how sequences continue across its edges.
func computeFacts(buf []byte, from, to int) byteFacts {
	part := buf[from:to]
	f := byteFacts{hash: xxhash.Sum64(part)}
	f.lf = bytes.Count(part, []byte{'\n'})
	if at := bytes.IndexByte(part, 0); at >= 0 { // faster than counting if there are no NULs
		f.nul = bytes.Count(part[at:], []byte{0})
	}
	returns := 0
	if at := bytes.IndexByte(part, '\r'); at >= 0 {
		returns = bytes.Count(part[at:], []byte{'\r'})
	}
	if returns > 0 || from > 0 && buf[from-1] == '\r' {
		f.crlf = countCRLF(buf, from, to)
		f.cr = returns - f.crlf
		if to < len(buf) && buf[to-1] == '\r' && buf[to] == '\n' {
			f.cr-- // belongs to the next chunk's pair
		}
		if from > 0 && from < to && buf[from-1] == '\r' && buf[from] == '\n' {
			f.cr++ // the carriage return of this pair is in the previous chunk
		}
	}
	f.addUTF8(buf, from, to)
	return f
}

// countCRLF returns the number of line feeds in buf[from:to] that follow a
// carriage return.
func countCRLF(buf []byte, from, to int) int {
	n := 0
	for at := from; at < to; at++ {
		next := bytes.IndexByte(buf[at:to], '\n')
		if next < 0 {
			break
		}
		at += next
		if at > 0 && buf[at-1] == '\r' {
			n++
		}
	}
	return n
}

// addUTF8 counts the valid and invalid UTF-8 sequences whose first byte is in
// buf[from:to].
func (f *byteFacts) addUTF8(buf []byte, from, to int) {
	at := from + continuationBytes(buf, from, to)
	for at < to {
		at += leadingASCII(buf[at:to])
		// Text that is not ASCII seldom has 8 ASCII bytes in a row: stay in
		// this loop until it has.
		for plain := 0; at < to && plain < 8; {
			if buf[at] < utf8.RuneSelf {
				at, plain = at+1, plain+1
				continue
			}
			plain = 0
			_, size := utf8.DecodeRune(buf[at:])
			if size > 1 {
				f.multibyte++
				at += size
				continue
			}
			if f.invalid == 0 {
				f.sampleAt = sampleStart(buf, from, at)
			}
			if !utf8.FullRune(buf[at:]) {
				f.cutOff = len(buf) - at
				f.invalid += f.cutOff
				return
			}
			f.invalid++
			at++
		}
	}
}

// sampleStart returns an offset near at where a character certainly begins:
// after a byte that is never part of a longer character, such as a line ending
// or a blank. The beginning of buf counts only if from is 0, because it then is
// the beginning of the file.
func sampleStart(buf []byte, from, at int) int {
	const outside = 0x30
	for i := at - 1; i >= max(0, at-sampleSize/4); i-- {
		if buf[i] < outside {
			return i + 1
		}
	}
	if from == 0 && at < sampleSize/4 {
		return 0
	}
	for i := at; i < min(len(buf), at+sampleSize/2); i++ {
		if buf[i] < outside {
			return i + 1
		}
	}
	return at
}

// continuationBytes returns the number of bytes at from that belong to a
// sequence that began before.
func continuationBytes(buf []byte, from, to int) int {
	for back := 1; back < utf8.UTFMax && back <= from; back++ {
		if utf8.RuneStart(buf[from-back]) {
			_, size := utf8.DecodeRune(buf[from-back:])
			return min(max(0, size-back), to-from)
		}
	}
	return 0
}

// computeUTF16Facts returns the facts of buf[from:to] in UTF-16. buf[from] must be
// at an even offset of the file.
func computeUTF16Facts(buf []byte, from, to int, e Encoding) byteFacts {
	f := byteFacts{hash: xxhash.Sum64(buf[from:to])}
	unit := func(i int) uint16 {
		if i < 0 || i+1 >= len(buf) {
			return 0
		}
		if e == UTF16BE {
			return binary.BigEndian.Uint16(buf[i:])
		}
		return binary.LittleEndian.Uint16(buf[i:])
	}
	for i := from; i < to; i += 2 {
		switch {
		case buf[i] == 0 && (i+1 >= len(buf) || buf[i+1] == 0):
			f.nul++
		case buf[i] > '\r' && (i+1 >= len(buf) || buf[i+1] > '\r'):
			// not a line ending, which has a byte 0
		case unit(i) == '\n':
			f.lf++
			if unit(i-2) == '\r' {
				f.crlf++
			}
		case unit(i) == '\r' && unit(i+2) != '\n':
			f.cr++
		}
	}
	return f
}

// add adds the counts of the range that follows.
func (f *byteFacts) add(g byteFacts) {
	f.lf += g.lf
	f.crlf += g.crlf
	f.cr += g.cr
	f.nul += g.nul
	f.multibyte += g.multibyte
	f.invalid += g.invalid
	f.cutOff += g.cutOff
}
