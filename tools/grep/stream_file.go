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

// maxMasked is the size of the largest file whose values are masked, in bytes.
// Masking takes twice the memory. No settings file is larger; a larger file
// counts as secret.
const maxMasked = 8 << 20

// decoding says in which encoding a large file is read.
type decoding struct {
	encoding textfile.Encoding // a guess; "": UTF-8, or the encoding of a byte order mark
	known    bool              // encoding has been determined
}

// searchLarge searches a file of any size, window by window. If notKey is set, the file
// is known to be no private key. masked says that the file's values must be masked.
func (w *searcher) searchLarge(path string, file *os.File, st sandbox.Stat, masked, notKey bool) {
	n, outcome, dec := w.countPass(path, file, st, masked, notKey, decoding{})
	if !dec.known {
		if dec = w.determineDecoding(file, st, outcome); dec.encoding != "" || outcome != binary {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				outcome = unreadable
			} else {
				n, outcome, dec = w.countPass(path, file, st, masked, true, dec)
			}
		}
	}
	if outcome != searched {
		w.countSkipped(path, outcome)
		return
	}
	if w.ctx.Err() == nil || n > 0 {
		w.recordSearched(path, st, n, dec.encoding)
	}
}

// countPass reads a file once and counts its matches. If the text turns out to
// be in an unknown encoding, it stops and returns a decoding that is not known.
func (w *searcher) countPass(path string, file *os.File, st sandbox.Stat, masked, notKey bool, f decoding) (n int, what outcome, _ decoding) {
	marked, strange := f.known, false
	what = w.eachWindow(path, file, st, masked, notKey, f.encoding, func(text []byte) bool {
		if n == 0 || w.args.OutputMode != modeFiles {
			more, foreign := w.countUTF8(text)
			if strange = foreign && !marked; strange {
				return false
			} else if foreign {
				more = w.countMatches(text)
			}
			n += more
		}
		return true // also to find a NUL
	})
	f.known = marked || !strange && what != binary
	return n, what, f
}

// determineDecoding determines the decoding of a file that seems to be neither
// UTF-8 nor marked as UTF-16. what is the outcome of the first pass.
func (w *searcher) determineDecoding(file *os.File, st sandbox.Stat, what outcome) decoding {
	if what != binary {
		return decoding{encoding: guessEncoding(w.ctx, file, st.Size), known: true}
	}
	head := make([]byte, min(st.Size, textfile.HeadSize))
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) || bomEncoding(head[:n]) != "" {
		return decoding{known: true}
	}
	return decoding{encoding: textfile.GuessUTF16(head[:n]), known: true}
}

// maxNamedInMemory bounds the bytes in memory of a file named by path: a line,
// or the whole file if matches may span lines.
const maxNamedInMemory = 1 << 30

// eachWindow calls yield with a file's text, window by window, until yield
// returns false or the context ends. It returns searched, or why the file
// cannot be searched (to the end). If masked is set or matches may span lines,
// one window has the whole text. notKey means that the file is known to be no
// private key. e is the encoding; "" means UTF-8 or the encoding of a byte
// order mark.
func (w *searcher) eachWindow(path string, file io.Reader, st sandbox.Stat, masked, notKey bool, e textfile.Encoding, yield func(text []byte) bool) outcome {
	whole := masked || w.query.matcher.CrossesLines()
	maxTotal, maxInMemory := w.MaxFileSize+w.MaxFileSize/2, w.MaxFileSize+w.MaxFileSize/2
	if e != "" { // UTF-8 may take three bytes for one
		maxTotal, maxInMemory = 3*w.MaxFileSize, 3*w.MaxFileSize
	}
	if w.anySize {
		maxTotal, maxInMemory = math.MaxInt64, max(maxNamedInMemory, maxInMemory)
	}
	switch {
	case st.Size > w.MaxFileSize && !w.anySize, st.Size > maxInMemory && whole:
		return tooLarge
	case masked && st.Size > maxMasked:
		return secretFile
	}
	n, err := io.ReadFull(file, w.head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return unreadable
	}
	head := w.head[:n]
	if !notKey && w.isDeniedKey(path, head) {
		return secretFile
	}
	if textfile.HasBinarySignature(head) {
		return binary
	}
	f := newWindowReader(file, head, e, w.large, w.buf)
	f.maxTotal, f.maxInMemory, f.oneWindow, f.fileSize = maxTotal, maxInMemory, whole, st.Size
	if st.Size > w.MaxFileSize && !whole {
		f.fileSize = 0 // a long line takes only the memory that it needs
	}
	defer func() { w.buf = f.close() }()
	for first := true; ; first = false {
		text, err := f.nextWindow(w.ctx)
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
