package textfile

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// reach is how far a chunk's facts depend on the bytes before and after it:
// the rest of a UTF-8 sequence, or of a line ending in UTF-16.
const reach = 4

// sampleSize is how much a chunk gives to the sample by which an encoding is
// guessed, and sampleLimit how large that sample may grow.
const (
	sampleSize  = 2 << 10
	sampleLimit = 32 * sampleSize
)

// facts are what one pass over some bytes tells. They add up.
type facts struct {
	sum     uint64 // of the bytes
	lf      int    // line feeds, those of crlf included
	crlf    int
	cr      int // carriage returns that no line feed follows
	nul     int
	multi   int // valid UTF-8 sequences of more than one byte
	invalid int // bytes that are not UTF-8
	cut     int // of them, those of a sequence that the end cuts off
	first   int // where in the buffer a sample for guessLegacy begins
}

// look takes the facts of buf[from:to]. What stands before and after, up to
// reach bytes, is only looked at to see how sequences go on across the edges.
func look(buf []byte, from, to int) facts {
	part := buf[from:to]
	f := facts{sum: xxhash.Sum64(part)}
	f.lf = bytes.Count(part, []byte{'\n'})
	if at := bytes.IndexByte(part, 0); at >= 0 { // faster than counting where there is none
		f.nul = bytes.Count(part[at:], []byte{0})
	}
	returns := 0
	if at := bytes.IndexByte(part, '\r'); at >= 0 {
		returns = bytes.Count(part[at:], []byte{'\r'})
	}
	if returns > 0 || from > 0 && buf[from-1] == '\r' {
		f.crlf = pairs(buf, from, to)
		f.cr = returns - f.crlf
		if to < len(buf) && buf[to-1] == '\r' && buf[to] == '\n' {
			f.cr-- // belongs to the next chunk's pair
		}
		if from > 0 && from < to && buf[from-1] == '\r' && buf[from] == '\n' {
			f.cr++ // the pair counted here has its return in the chunk before
		}
	}
	f.lookUTF8(buf, from, to)
	return f
}

// pairs counts the line feeds in buf[from:to] that follow a carriage return.
func pairs(buf []byte, from, to int) int {
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

// lookUTF8 counts sequences whose first byte is in buf[from:to].
func (f *facts) lookUTF8(buf []byte, from, to int) {
	at := from + inherited(buf, from, to)
	for at < to {
		at += ascii(buf[at:to])
		// Text that is not ASCII seldom has 8 plain bytes in a row: stay here
		// until it has.
		for plain := 0; at < to && plain < 8; {
			if buf[at] < utf8.RuneSelf {
				at, plain = at+1, plain+1
				continue
			}
			plain = 0
			_, size := utf8.DecodeRune(buf[at:])
			if size > 1 {
				f.multi++
				at += size
				continue
			}
			if f.invalid == 0 {
				f.first = sampleStart(buf, from, at)
			}
			if !utf8.FullRune(buf[at:]) {
				f.cut = len(buf) - at
				f.invalid += f.cut
				return
			}
			f.invalid++
			at++
		}
	}
}

// sampleStart returns where near at a character surely begins: behind a byte
// that no encoding has inside one, such as a line's end or a blank; at the
// beginning of buf only where it is the file's, which from == 0 tells.
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

// inherited returns how many bytes at from end a sequence that began before.
func inherited(buf []byte, from, to int) int {
	for back := 1; back < utf8.UTFMax && back <= from; back++ {
		if utf8.RuneStart(buf[from-back]) {
			_, size := utf8.DecodeRune(buf[from-back:])
			return min(max(0, size-back), to-from)
		}
	}
	return 0
}

// ascii returns how many bytes b has before the first that is not ASCII, or a
// little less.
func ascii(b []byte) int {
	const high = 0x8080808080808080
	n := 0
	for ; len(b)-n >= 64; n += 64 {
		c := (*[64]byte)(b[n:])
		if (binary.LittleEndian.Uint64(c[:8])|binary.LittleEndian.Uint64(c[8:16])|
			binary.LittleEndian.Uint64(c[16:24])|binary.LittleEndian.Uint64(c[24:32])|
			binary.LittleEndian.Uint64(c[32:40])|binary.LittleEndian.Uint64(c[40:48])|
			binary.LittleEndian.Uint64(c[48:56])|binary.LittleEndian.Uint64(c[56:]))&high != 0 {
			break
		}
	}
	for ; len(b)-n >= 8; n += 8 {
		if binary.LittleEndian.Uint64(b[n:])&high != 0 {
			break
		}
	}
	return n
}

// lookWide is look for UTF-16: buf[from:to] begins at an even offset of the
// file.
func lookWide(buf []byte, from, to int, e Encoding) facts {
	f := facts{sum: xxhash.Sum64(buf[from:to])}
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
			// no line ending: one of its bytes is 0
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

func (f *facts) add(g facts) {
	f.lf += g.lf
	f.crlf += g.crlf
	f.cr += g.cr
	f.nul += g.nul
	f.multi += g.multi
	f.invalid += g.invalid
	f.cut += g.cut
}
