package textfile

import (
	"bytes"
	"io"
	"strings"
)

// DefaultMaxChars is the default number of characters shown of a line.
const DefaultMaxChars = 2000

// maxCharBytes is the length of the longest character in any encoding.
const maxCharBytes = 4

// Line is one line of a file.
type Line struct {
	Number int64
	Offset int64  // of its first byte
	Size   int64  // in bytes, with the ending
	Text   string // in UTF-8, without the ending
	Cut    bool   // Text is only the beginning of the line
	Sum    uint32 // LineSum of the bytes read: all of them unless Cut
}

// EachLine calls yield for each line, from line number first on (from 1), until
// yield returns false or the file ends. r is the file. EachLine reads only what it
// needs, and keeps at most maxChars characters of a line, however long. It
// returns ErrChanged if the lines are not at the positions in the index.
func (x *Index) EachLine(r io.ReaderAt, first int64, maxChars int, yield func(Line) bool) error {
	first = max(first, 1)
	at, err := x.LineOffset(r, first)
	if err != nil {
		return err
	}
	w := lineReader{x: x, r: r, ends: x.lineEnds(), buf: make([]byte, max(blockSize, 2*(maxChars+2)*maxCharBytes)), at: at}
	for number := first; number <= x.Lines; number++ {
		raw, offset, size, err := w.next((maxChars + 2) * maxCharBytes)
		if err != nil {
			return err
		}
		if size == 0 || number == x.Lines && w.at != x.Size {
			return ErrChanged // no line is empty: it has at least its ending
		}
		line := Line{Number: number, Offset: offset, Size: size, Sum: LineSum(raw)}
		line.Text, line.Cut = x.lineText(raw, int64(len(raw)) < size, maxChars)
		if !yield(line) {
			return nil
		}
	}
	return nil
}

// lineText returns the decoded text of a line, at most maxChars characters
// without the ending. cut reports that text is missing. partial means that raw
// is only the beginning of the line, which may end inside a character.
func (x *Index) lineText(raw []byte, partial bool, maxChars int) (text string, cut bool) {
	if !partial {
		raw = x.withoutEnding(raw)
	}
	text = x.Encoding.Decode(raw)
	if len(text) <= maxChars && !partial {
		return text, false
	}
	chars := 0
	for i := range text {
		if chars == maxChars {
			return strings.Clone(text[:i]), true
		}
		chars++
	}
	return text, partial
}

// withoutEnding returns a line without its line ending.
func (x *Index) withoutEnding(raw []byte) []byte {
	take := func(unit byte) bool {
		var end []byte
		switch x.Encoding {
		case UTF16LE:
			end = []byte{unit, 0}
		case UTF16BE:
			end = []byte{0, unit}
		default:
			end = []byte{unit}
		}
		cut, ok := bytes.CutSuffix(raw, end)
		raw = cut
		return ok
	}
	if x.Ending == CR {
		take('\r')
		return raw
	}
	if take('\n') {
		take('\r')
	}
	return raw
}

// lineReader reads a file block by block, from the start of a line.
type lineReader struct {
	x      *Index
	r      io.ReaderAt
	ends   lineEndFinder
	buf    []byte
	unread []byte // bytes read and not used yet, at offset at
	at     int64
}

// next returns the next line with its ending, or its first limit bytes, and the
// line's offset and whole size in the file. limit must be even. The bytes are
// valid until the next call.
func (w *lineReader) next(limit int) (raw []byte, offset, size int64, err error) {
	offset = w.at
	if n := w.ends.afterNext(w.unread); n >= 0 {
		return w.consume(n, limit), offset, int64(n), nil
	}
	// Move the remaining bytes to the front and read more after them.
	kept := copy(w.buf, w.unread)
	end := w.at + int64(kept)
	more, err := readBlock(w.r, w.buf[kept:len(w.buf)&^1], end, w.x.Size)
	if err != nil {
		return nil, 0, 0, err
	}
	w.unread = w.buf[:kept+len(more)]
	if n := w.ends.afterNext(w.unread); n >= 0 {
		return w.consume(n, limit), offset, int64(n), nil
	}
	end += int64(len(more))
	if end < w.x.Size { // longer than the buffer
		if end, err = w.x.nextLineStart(w.r, end); err != nil {
			return nil, 0, 0, err
		}
		raw, w.unread, w.at = w.unread[:min(limit, len(w.unread))], nil, end
		return raw, offset, end - offset, nil
	}
	n := len(w.unread)
	return w.consume(n, limit), offset, int64(n), nil
}

// consume returns the first n unread bytes, at most limit of them, and marks
// all n as read.
func (w *lineReader) consume(n, limit int) []byte {
	raw := w.unread[:min(n, limit)]
	w.unread = w.unread[n:]
	w.at += int64(n)
	return raw
}
