package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// decoding says how to decode a large file.
type decoding struct {
	encoding textfile.Encoding // a guess; "": UTF-8, or the encoding of a byte order mark
	settled  bool              // encoding is known
}

// stream searches a file of any size.
func (w *searcher) stream(path string, file *os.File, st sandbox.Stat, masked, checked bool) {
	n, outcome, form := w.pass(path, file, st, masked, checked, decoding{})
	if !form.settled {
		if form = w.settle(file, st, outcome); form.encoding != "" || outcome != binary {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				outcome = unreadable
			} else {
				n, outcome, form = w.pass(path, file, st, masked, true, form)
			}
		}
	}
	if outcome != searched {
		w.skip(path, outcome)
		return
	}
	if w.ctx.Err() == nil || n > 0 {
		w.record(path, st, n, form.encoding)
	}
}

// pass counts the matches of a file. If the text turns out to be in an unknown
// encoding, it stops and returns a decoding that is not settled.
func (w *searcher) pass(path string, file *os.File, st sandbox.Stat, masked, checked bool, f decoding) (n int, what outcome, _ decoding) {
	marked, strange := f.settled, false
	what = w.windows(path, file, st, masked, checked, f.encoding, func(text []byte) bool {
		if n == 0 || w.args.OutputMode != modeFiles {
			more, foreign := w.countText(text)
			if strange = foreign && !marked; strange {
				return false
			} else if foreign {
				more = w.count(text)
			}
			n += more
		}
		return true // also to find a NUL
	})
	f.settled = marked || !strange && what != binary
	return n, what, f
}

// settle determines the decoding of a file that seems to be neither UTF-8 nor
// marked as UTF-16.
func (w *searcher) settle(file *os.File, st sandbox.Stat, what outcome) decoding {
	if what != binary {
		return decoding{encoding: guess(w.ctx, file, st.Size), settled: true}
	}
	head := make([]byte, min(st.Size, textfile.HeadSize))
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) || wideEncoding(head[:n]) != "" {
		return decoding{settled: true}
	}
	return decoding{encoding: textfile.GuessWide(head[:n]), settled: true}
}

// maxHeld bounds the bytes in memory of a file named by path: a line, or the
// whole file if matches may span lines.
const maxHeld = 1 << 30

// windows calls yield with a file's text, window by window, until it returns
// false or the context ends. If masked is set or matches may span lines, one
// window has the whole text. checked means that the file is known not to be a
// key.
func (w *searcher) windows(path string, file io.Reader, st sandbox.Stat, masked, checked bool, e textfile.Encoding, yield func(text []byte) bool) outcome {
	whole := masked || w.query.matcher.CrossesLines()
	most, held := w.MaxFileSize+w.MaxFileSize/2, w.MaxFileSize+w.MaxFileSize/2
	if e != "" { // UTF-8 may take three bytes for one
		most, held = 3*w.MaxFileSize, 3*w.MaxFileSize
	}
	if w.anySize {
		most, held = math.MaxInt64, max(maxHeld, held)
	}
	switch {
	case st.Size > w.MaxFileSize && !w.anySize, st.Size > held && whole:
		return tooLarge
	case masked && st.Size > maxMasked:
		return secretFile
	}
	n, err := io.ReadFull(file, w.head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return unreadable
	}
	head := w.head[:n]
	if !checked && w.isKey(path, head) {
		return secretFile
	}
	if textfile.HasBinarySignature(head) {
		return binary
	}
	f := newWindowReader(file, head, e, w.large, w.buf)
	f.limit, f.held, f.whole, f.size = most, held, whole, st.Size
	if st.Size > w.MaxFileSize && !whole {
		f.size = 0 // a long line takes only the memory that it needs
	}
	defer func() { w.buf = f.close() }()
	for first := true; ; first = false {
		text, err := f.next(w.ctx)
		switch {
		case errors.Is(err, io.EOF), w.ctx.Err() != nil:
			return searched
		case errors.Is(err, errTooLarge):
			return tooLarge
		case err != nil:
			return unreadable
		}
		if first && masked {
			text = secret.Mask(text)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return binary
		}
		if !yield(text) {
			return searched
		}
	}
}
