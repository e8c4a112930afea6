package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxLine is the default limit of a line in bytes: larger than any message that
// a client accepts (the TypeScript SDK closes at 10 MiB), small enough for
// memory.
const MaxLine = 64 << 20

// ErrTooLong is wrapped by ReadLine's error, a *TooLongError, for a line over
// the limit. The line has been skipped; reading can continue.
var ErrTooLong = errors.New("line too long")

// A TooLongError is ErrTooLong with the beginning of the line, which usually
// shows the request that the line answers.
type TooLongError struct {
	Max  int    // the limit in bytes
	Head []byte // the first bytes of the line, at most 256
}

// Error returns the text of ErrTooLong and the limit in bytes, without Head.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("%v: more than %d bytes", ErrTooLong, e.Max)
}

// Unwrap returns ErrTooLong.
func (e *TooLongError) Unwrap() error { return ErrTooLong }

// maxHead is the number of bytes in TooLongError.Head.
const maxHead = 256

// Sizes of the read buffer, in bytes: it stays small on a mostly idle
// connection and grows with the input.
const (
	minRead  = 512
	maxRead  = 32 << 10
	longLine = 4 << 10 // lines from this length on are read into a separate buffer
)

// maxExpectedLine bounds the buffer, in bytes, that is allocated at once for a
// long line because the previous line was as long.
const maxExpectedLine = 4 << 20

// A Reader reads lines of any length up to a limit. It is not safe for
// concurrent use.
type Reader struct {
	src          io.Reader
	maxLine      int
	buf          []byte
	start, end   int   // the unread part of buf
	lastLongLine int   // length of the last long line, for the next one's buffer; 0: it was short
	err          error // of the last read; returned after the lines before it
	bomChecked   bool  // the first line has been read
}

// NewReader returns a Reader of lines of at most maxLine bytes; 0 means
// MaxLine. To read buffered input first, put it before src with io.MultiReader.
func NewReader(src io.Reader, maxLine int) *Reader {
	if maxLine <= 0 {
		maxLine = MaxLine
	}
	return &Reader{src: src, maxLine: maxLine}
}

// Buffered reports whether input has been read that ReadLine has not returned.
func (r *Reader) Buffered() bool { return r.start < r.end }

// ReadLine returns the next line, in newly allocated memory, without its ending
// (LF or CRLF). The last line needs no newline. A byte order mark at the start
// of the input is dropped. At the end of input the error is io.EOF. After a
// *TooLongError, reading can continue. Any other error comes from the source.
func (r *Reader) ReadLine() ([]byte, error) {
	line, err := r.nextLine()
	if err != nil {
		return nil, err
	}
	if !r.bomChecked {
		r.bomChecked = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// nextLine returns the next line without its LF. Its errors are those of ReadLine.
func (r *Reader) nextLine() ([]byte, error) {
	var long []byte // the part of a line before the buffer; of a skipped line, its head
	skipping := false
	for {
		if i := bytes.IndexByte(r.buf[r.start:r.end], '\n'); i >= 0 {
			part := r.buf[r.start : r.start+i]
			r.start += i + 1
			return r.completeLine(long, part, skipping)
		}
		part := r.buf[r.start:r.end]
		if !skipping && len(long)+len(part) > r.maxLine {
			skipping, long = true, lineHead(long, part)
		}
		if !skipping {
			long = append(long, part...)
		}
		r.start, r.end = 0, 0
		if r.err != nil {
			if len(long) > 0 || skipping {
				return r.completeLine(long, nil, skipping)
			}
			return nil, r.err
		}
		if !skipping && len(long) >= longLine {
			long = r.readLong(long)
		} else {
			r.fill()
		}
	}
}

// completeLine returns the line that consists of long and part, or a
// *TooLongError if skipping is set or the line is too long. part is in the
// buffer and is copied.
func (r *Reader) completeLine(long, part []byte, skipping bool) ([]byte, error) {
	if skipping || len(long)+len(part) > r.maxLine {
		r.bomChecked = true
		return nil, &TooLongError{Max: r.maxLine, Head: lineHead(long, part)}
	}
	if long == nil {
		return bytes.Clone(part), nil
	}
	if r.lastLongLine = 0; len(long) >= maxRead {
		r.lastLongLine = min(len(long)+1, maxExpectedLine)
	}
	return append(long, part...), nil
}

// lineHead returns a copy of the beginning of the line that consists of start and part.
func lineHead(start, part []byte) []byte {
	h := append([]byte(nil), start[:min(len(start), maxHead)]...)
	return append(h, part[:min(len(part), maxHead-len(h))]...)
}

// fill reads once into the buffer, which must be empty.
func (r *Reader) fill() {
	switch {
	case r.buf == nil:
		r.buf = make([]byte, minRead)
	case len(r.buf) > maxRead:
		r.buf = make([]byte, maxRead)
	}
	r.end = r.read(r.buf)
	if r.end == len(r.buf) && r.end < maxRead && (r.end < longLine || bytes.IndexByte(r.buf, '\n') >= 0) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...) // more is waiting
	}
}

// readLong reads more of a long line directly into its memory, to avoid a copy,
// and returns the longer line. Input after the line's end goes to the buffer.
func (r *Reader) readLong(long []byte) []byte {
	if cap(long)-len(long) < longLine {
		grow := max(len(long), r.lastLongLine-len(long), maxRead)
		long = slices.Grow(long, min(grow, r.maxLine+1-len(long)))
	}
	have := len(long)
	long = long[:min(cap(long), r.maxLine+1)]
	long = long[:have+r.read(long[have:])]
	fresh := long[have:]
	i := bytes.IndexByte(fresh, '\n')
	if i < 0 {
		return long
	}
	rest := fresh[i:]
	if len(rest) > len(r.buf) {
		r.buf = make([]byte, len(rest))
	}
	r.end = copy(r.buf, rest)
	return long[:have+i]
}

// read reads into p and returns the number of bytes: at least one, unless it
// sets r.err.
func (r *Reader) read(p []byte) int {
	for range 100 {
		n, err := r.src.Read(p)
		if r.err = err; n > 0 || err != nil {
			return n
		}
	}
	r.err = io.ErrNoProgress
	return 0
}
