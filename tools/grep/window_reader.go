package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf16"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

const (
	// wholeSize bounds the files that are read at once, and is the size of
	// the windows of a larger file, in bytes.
	wholeSize = 256 << 10
	// ownBufferSize bounds the part of a file that each worker may hold
	// without the large buffer, in bytes. Files with long lines, and files
	// that must be searched as a whole, may need more.
	ownBufferSize = 2 << 20
	// headSize is the size of the beginning of a large file that is checked
	// for binary content before the search, in bytes.
	headSize = 8 << 10
)

// windowReader reads a file's text in windows of whole lines, so that a file of
// any size takes bounded memory, except for its longest line.
type windowReader struct {
	in          io.Reader // decodes to UTF-8
	large       *largeBuffer
	maxTotal    int64 // maximum bytes of text in total
	maxInMemory int64 // maximum bytes of text in memory
	oneWindow   bool  // return all text in one window
	fileSize    int64 // 0: unknown
	buf         []byte
	next        int    // start of the text in buf that was not yet returned
	atEnd       bool   // in has no more text
	total       int64  // bytes of text read
	holdsLarge  bool   // it has acquired the large buffer
	ownBuf      []byte // the buffer that it began with
}

// newWindowReader returns a reader of a file in encoding e; "" means UTF-8 or
// the encoding of a byte order mark. head has the file's first bytes, and r
// continues after them. buf is a buffer to use. The caller sets the limits and
// closes the reader.
func newWindowReader(r io.Reader, head []byte, e textfile.Encoding, large *largeBuffer, buf []byte) *windowReader {
	in := io.MultiReader(bytes.NewReader(head), r)
	if e != "" {
		in = e.NewReader(in)
	} else if e := bomEncoding(head); e != "" {
		in = &utf16Reader{in: io.MultiReader(bytes.NewReader(head[2:]), r), encoding: e}
	} else if rest, ok := bytes.CutPrefix(head, []byte("\xef\xbb\xbf")); ok {
		in = io.MultiReader(bytes.NewReader(rest), r)
	}
	return &windowReader{in: in, large: large, buf: buf[:0], ownBuf: buf[:0]}
}

// errTooLarge reports a file that exceeds the limit, or that has a line over
// the limit.
var errTooLarge = errors.New("the file is too large")

// nextWindow returns the next window, which is valid until the following call. After the
// last window it returns io.EOF. It returns errTooLarge if the file or one of its lines is
// too large, and the errors of ctx and of reading.
func (f *windowReader) nextWindow(ctx context.Context) ([]byte, error) {
	rest := copy(f.buf, f.buf[f.next:])
	f.buf, f.next = f.buf[:rest], 0
	looked := 0
	for !f.atEnd {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := f.growBuffer(ctx); err != nil {
			return nil, err
		}
		n, err := f.in.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		if f.total += int64(n); f.total > f.maxTotal {
			return nil, errTooLarge
		}
		if err == io.EOF {
			f.atEnd = true
			break
		}
		if err != nil {
			return nil, err
		}
		if len(f.buf) < cap(f.buf) || f.oneWindow {
			continue
		}
		if last := bytes.LastIndexByte(f.buf[looked:], '\n'); last >= 0 {
			f.next = looked + last + 1
			return f.buf[:f.next], nil
		}
		looked = len(f.buf)
	}
	if f.next = len(f.buf); f.next == 0 {
		return nil, io.EOF
	}
	return f.buf, nil
}

// growBuffer enlarges a full buffer. Over ownBufferSize it acquires the large
// buffer and may wait for it.
func (f *windowReader) growBuffer(ctx context.Context) error {
	if len(f.buf) < cap(f.buf) {
		return nil
	}
	bigger := max(wholeSize, 2*int64(cap(f.buf)))
	if f.oneWindow || bigger > ownBufferSize {
		bigger = max(bigger, f.fileSize)
	}
	bigger = min(bigger, f.maxInMemory) + 1
	if bigger <= int64(cap(f.buf)) {
		return errTooLarge
	}
	if bigger <= ownBufferSize {
		f.buf = append(make([]byte, 0, bigger), f.buf...)
		return nil
	}
	if !f.holdsLarge {
		if err := f.large.acquire(ctx); err != nil {
			return err
		}
		f.holdsLarge = true
	}
	f.buf = f.large.grow(int(bigger), f.buf)
	return nil
}

// close releases the large buffer. It returns the worker's own buffer for
// reuse.
func (f *windowReader) close() []byte {
	if f.holdsLarge {
		f.holdsLarge = false
		f.large.release()
		return f.ownBuf
	}
	return f.buf
}

// utf16Reader is a reader that decodes UTF-16 to UTF-8.
type utf16Reader struct {
	in       io.Reader
	encoding textfile.Encoding
	raw      [64 << 10]byte
	rest     int    // bytes at the start of raw: an incomplete character
	text     string // decoded, not yet returned
	end      error  // of in; nil: none yet
}

// Read implements io.Reader: it returns the text as UTF-8. Errors of in come after the text
// that was read before them.
func (w *utf16Reader) Read(p []byte) (int, error) {
	for w.text == "" {
		if w.end != nil {
			return 0, w.end
		}
		n, err := io.ReadFull(w.in, w.raw[w.rest:])
		n += w.rest
		w.rest = 0
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if w.end = err; err == nil {
			whole := n &^ 1
			if whole >= 2 && utf16.IsSurrogate(w.codeUnit(whole-2)) && w.codeUnit(whole-2) < 0xDC00 {
				whole -= 2
			}
			w.text = w.encoding.Decode(w.raw[:whole])
			w.rest = copy(w.raw[:], w.raw[whole:n])
		} else {
			w.text = w.encoding.Decode(w.raw[:n])
		}
	}
	n := copy(p, w.text)
	w.text = w.text[n:]
	return n, nil
}

// codeUnit returns the code unit at offset i of raw.
func (w *utf16Reader) codeUnit(i int) rune {
	if w.encoding == textfile.UTF16BE {
		return rune(w.raw[i])<<8 | rune(w.raw[i+1])
	}
	return rune(w.raw[i+1])<<8 | rune(w.raw[i])
}
