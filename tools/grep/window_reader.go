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
	// ownSize bounds the part of a file that each worker may hold without
	// the large buffer, in bytes. Files with long lines, and files that
	// must be searched as a whole, may need more.
	ownSize = 2 << 20
	// headSize is the size of the beginning of a large file that is checked
	// for binary content before the search.
	headSize = 8 << 10
	// maxMasked is the size of the largest file whose values are masked,
	// which takes twice the memory. No settings file is larger; a larger
	// file counts as secret.
	maxMasked = 8 << 20
	// keyHead is the size of the beginning of a file that is checked for a
	// private key.
	keyHead = 1 << 10
)

// windowReader returns a file's text in windows of whole lines, so that a file
// of any size takes bounded memory, except for its longest line.
type windowReader struct {
	in         io.Reader // decoded
	large      *largeBuffer
	limit      int64 // maximum bytes of text in total
	held       int64 // maximum bytes of text in memory
	whole      bool  // all in one window
	size       int64 // of the file, if known
	buf        []byte
	from       int // start of the text not yet returned
	end        bool
	taken      int64
	holdsLarge bool   // it holds the large buffer
	own        []byte // the buffer that it began with
}

// newWindowReader returns a reader of a file in encoding e; "" means UTF-8 or
// the encoding of a byte order mark. head holds the file's first bytes, and buf
// is a buffer to use.
func newWindowReader(r io.Reader, head []byte, e textfile.Encoding, large *largeBuffer, buf []byte) *windowReader {
	in := io.MultiReader(bytes.NewReader(head), r)
	if e != "" {
		in = e.NewReader(in)
	} else if e := wideEncoding(head); e != "" {
		in = &wideReader{in: io.MultiReader(bytes.NewReader(head[2:]), r), encoding: e}
	} else if rest, ok := bytes.CutPrefix(head, []byte("\xef\xbb\xbf")); ok {
		in = io.MultiReader(bytes.NewReader(rest), r)
	}
	return &windowReader{in: in, large: large, buf: buf[:0], own: buf[:0]}
}

// errTooLarge reports a file that grew beyond the limit or has a line beyond
// it.
var errTooLarge = errors.New("the file is too large")

// next returns the next window, which is valid until the following call, or
// io.EOF after the last one.
func (f *windowReader) next(ctx context.Context) ([]byte, error) {
	rest := copy(f.buf, f.buf[f.from:])
	f.buf, f.from = f.buf[:rest], 0
	looked := 0
	for !f.end {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := f.makeRoom(ctx); err != nil {
			return nil, err
		}
		n, err := f.in.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		if f.taken += int64(n); f.taken > f.limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			f.end = true
			break
		}
		if err != nil {
			return nil, err
		}
		if len(f.buf) < cap(f.buf) || f.whole {
			continue
		}
		if last := bytes.LastIndexByte(f.buf[looked:], '\n'); last >= 0 {
			f.from = looked + last + 1
			return f.buf[:f.from], nil
		}
		looked = len(f.buf)
	}
	if f.from = len(f.buf); f.from == 0 {
		return nil, io.EOF
	}
	return f.buf, nil
}

// makeRoom makes room in the buffer. Beyond ownSize it takes the large buffer
// and may wait for it.
func (f *windowReader) makeRoom(ctx context.Context) error {
	if len(f.buf) < cap(f.buf) {
		return nil
	}
	bigger := max(wholeSize, 2*int64(cap(f.buf)))
	if f.whole || bigger > ownSize {
		bigger = max(bigger, f.size)
	}
	bigger = min(bigger, f.held) + 1
	if bigger <= int64(cap(f.buf)) {
		return errTooLarge
	}
	if bigger <= ownSize {
		f.buf = append(make([]byte, 0, bigger), f.buf...)
		return nil
	}
	if !f.holdsLarge {
		if err := f.large.take(ctx); err != nil {
			return err
		}
		f.holdsLarge = true
	}
	f.buf = f.large.grow(int(bigger), f.buf)
	return nil
}

// close releases the large buffer and returns the worker's buffer for reuse.
func (f *windowReader) close() []byte {
	if f.holdsLarge {
		f.holdsLarge = false
		f.large.release()
		return f.own
	}
	return f.buf
}

// wideReader decodes UTF-16 to UTF-8.
type wideReader struct {
	in       io.Reader
	encoding textfile.Encoding
	raw      [64 << 10]byte
	kept     int // bytes at the start of raw: an incomplete character
	text     string
	end      error
}

func (w *wideReader) Read(p []byte) (int, error) {
	for w.text == "" {
		if w.end != nil {
			return 0, w.end
		}
		n, err := io.ReadFull(w.in, w.raw[w.kept:])
		n += w.kept
		w.kept = 0
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if w.end = err; err == nil {
			whole := n &^ 1
			if whole >= 2 && utf16.IsSurrogate(w.unit(whole-2)) && w.unit(whole-2) < 0xDC00 {
				whole -= 2
			}
			w.text = w.encoding.Decode(w.raw[:whole])
			w.kept = copy(w.raw[:], w.raw[whole:n])
		} else {
			w.text = w.encoding.Decode(w.raw[:n])
		}
	}
	n := copy(p, w.text)
	w.text = w.text[n:]
	return n, nil
}

// unit returns the code unit at offset i of raw.
func (w *wideReader) unit(i int) rune {
	if w.encoding == textfile.UTF16BE {
		return rune(w.raw[i])<<8 | rune(w.raw[i+1])
	}
	return rune(w.raw[i+1])<<8 | rune(w.raw[i])
}
