package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxLine is the default bound of a line: larger than any message a client
// accepts (the TypeScript SDK closes at 10 MiB), small enough to hold.
const MaxLine = 64 << 20

// ErrTooLong is wrapped by ReadLine's error for a line over the bound. The
// line has been skipped; reading can go on.
var ErrTooLong = errors.New("line too long")

// A TooLongError is that error with how the line began, which usually tells
// whose answer it was.
type TooLongError struct {
	Max  int    // the bound in bytes
	Head []byte // the first bytes of the line, at most 256
}

// Error says how much was allowed.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("%v: more than %d bytes", ErrTooLong, e.Max)
}

// Unwrap returns ErrTooLong.
func (e *TooLongError) Unwrap() error { return ErrTooLong }

const headSize = 256

// The buffer that lines are read through: of a connection that is mostly
// silent it stays small, and where much comes at once it grows.
const (
	minRead = 512
	maxRead = 32 << 10
	longer  = 4 << 10 // a line that is read into memory of its own
)

// maxUsual bounds the room that is made at once for a long line because the
// last one was as long.
const maxUsual = 4 << 20

// A Reader reads lines of any length up to a bound.
type Reader struct {
	src        io.Reader
	max        int
	buf        []byte
	start, end int // the unread part of buf
	usual      int // how long the last long line was
	err        error
	begun      bool
}

// NewReader returns a Reader. A max of 0 means MaxLine. Buffered input may be
// given back first by putting it before src with io.MultiReader.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = MaxLine
	}
	return &Reader{src: src, max: max}
}

// Buffered reports whether more of the input was read than was returned.
func (r *Reader) Buffered() bool { return r.start < r.end }

// ReadLine returns the next line without its ending (LF or CRLF), in memory
// of its own. A last line without a newline is a line; after it, and after
// any read error, the error comes alone. A byte order mark at the start of
// the input is dropped.
func (r *Reader) ReadLine() ([]byte, error) {
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

func (r *Reader) next() ([]byte, error) {
	var long []byte // what a line has beyond one buffer; of one that is skipped, its head
	skipping := false
	for {
		if i := bytes.IndexByte(r.buf[r.start:r.end], '\n'); i >= 0 {
			part := r.buf[r.start : r.start+i]
			r.start += i + 1
			return r.finish(long, part, skipping)
		}
		part := r.buf[r.start:r.end]
		if !skipping && len(long)+len(part) > r.max {
			skipping, long = true, head(long, part)
		}
		if !skipping {
			long = append(long, part...)
		}
		r.start, r.end = 0, 0
		if r.err != nil {
			if len(long) > 0 || skipping {
				return r.finish(long, nil, skipping)
			}
			return nil, r.err
		}
		if !skipping && len(long) >= longer {
			long = r.extend(long)
		} else {
			r.fill()
		}
	}
}

func (r *Reader) finish(long, part []byte, skipping bool) ([]byte, error) {
	if skipping || len(long)+len(part) > r.max {
		r.begun = true
		return nil, &TooLongError{Max: r.max, Head: head(long, part)}
	}
	if long == nil {
		return bytes.Clone(part), nil
	}
	if r.usual = 0; len(long) >= maxRead {
		r.usual = min(len(long)+1, maxUsual)
	}
	return append(long, part...), nil
}

// head returns how a line begins, in memory of its own.
func head(long, part []byte) []byte {
	h := append([]byte(nil), long[:min(len(long), headSize)]...)
	return append(h, part[:min(len(part), headSize-len(h))]...)
}

// fill reads once into the empty buffer.
func (r *Reader) fill() {
	switch {
	case r.buf == nil:
		r.buf = make([]byte, minRead)
	case len(r.buf) > maxRead:
		r.buf = make([]byte, maxRead)
	}
	r.end = r.read(r.buf)
	if r.end == len(r.buf) && r.end < maxRead && (r.end < longer || bytes.IndexByte(r.buf, '\n') >= 0) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...) // more is waiting
	}
}

// extend reads once more of a long line, into memory of the line's, so that it
// is not copied again. What follows its end is left in the buffer.
func (r *Reader) extend(long []byte) []byte {
	if cap(long)-len(long) < longer {
		room := max(len(long), r.usual-len(long), maxRead)
		long = slices.Grow(long, min(room, r.max+1-len(long)))
	}
	have := len(long)
	long = long[:min(cap(long), r.max+1)]
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

// read reads something into p, unless the input ended.
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
