// Package textfile reads text files of any size without converting them. One
// pass in constant memory finds the encoding, the line endings, the number and
// positions of lines, and an etag of the bytes.
//
// Scan creates an Index, which is valid until the file changes; with it, any
// line is found by reading one chunk. Lines are returned decoded and with their
// byte offsets, so that an editor can splice bytes:
//
//	index, err := textfile.Scan(ctx, f, size, textfile.Options{})
//	err = index.EachLine(f, 4_000_000, textfile.DefaultMaxChars, func(l textfile.Line) bool { … })
package textfile

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// ErrChanged reports that a file became shorter while it was read.
var ErrChanged = errors.New("the file changed while it was read")

// Index describes one version of a file: its format, etag, number of lines and
// their positions. It is not valid for another version.
type Index struct {
	Format
	Size  int64
	Etag  Etag
	Lines int64 // including a last line without an ending
	Final bool  // the last line has an ending

	// LinesBefore[i] is the number of lines that end before offset i*Stride.
	// Stride is a number of bytes, a multiple of ChunkSize. If LinesBefore is
	// empty, lines are counted from the beginning.
	Stride      int64
	LinesBefore []int64

	kept keptFacts
}

// keptFacts is the data requested by Options.KeepFacts: the facts of each
// chunk, and the encoding used to compute them.
type keptFacts struct {
	encoding Encoding
	facts    []byteFacts
}

// LineIndexMin is the smallest file size, in bytes, at which it is worth
// storing a line index.
const LineIndexMin = 8 << 20

// lineEndFinder finds line endings in the bytes of one format.
type lineEndFinder struct {
	unit byte
	wide int // 0: single bytes; 1: UTF-16LE; 2: UTF-16BE
}

// lineEnds returns the finder for the line endings of the indexed format.
func (x *Index) lineEnds() lineEndFinder {
	e := lineEndFinder{unit: '\n'}
	if x.Ending == CR {
		e.unit = '\r'
	}
	switch x.Encoding {
	case UTF16LE:
		e.wide = 1
	case UTF16BE:
		e.wide = 2
	}
	return e
}

// afterNext returns the offset in b just after the first line ending; -1 if
// b has none. UTF-16 text in b must begin at an even offset of the file.
func (e lineEndFinder) afterNext(b []byte) int {
	if e.wide == 0 {
		if i := bytes.IndexByte(b, e.unit); i >= 0 {
			return i + 1
		}
		return -1
	}
	for at := 0; at < len(b); {
		i := bytes.IndexByte(b[at:], e.unit)
		if i < 0 {
			return -1
		}
		at += i
		unit := at &^ 1
		low := e.wide == 1 && at == unit && unit+1 < len(b) && b[unit+1] == 0
		if low || e.wide == 2 && at == unit+1 && b[unit] == 0 {
			return unit + 2
		}
		at++
	}
	return -1
}

// blockSize is the number of bytes read at once when searching for a line.
const blockSize = 64 << 10

// LineOffset returns the byte offset at which a line begins. Lines count from
// 1; the first begins after a byte order mark. For a line after the last it
// returns the size of the file. It returns ErrChanged if the file is shorter
// than the index says.
func (x *Index) LineOffset(r io.ReaderAt, line int64) (int64, error) {
	if line <= 1 {
		return int64(x.BOM), nil
	}
	if line > x.Lines {
		return x.Size, nil
	}
	stride, _ := slices.BinarySearch(x.LinesBefore, line-1) // the first stride with line-1 line endings before it
	stride--
	left, at := line-1, int64(0)
	if stride >= 0 {
		left, at = line-1-x.LinesBefore[stride], int64(stride)*x.Stride
	}
	e := x.lineEnds()
	buf := make([]byte, blockSize)
	for at < x.Size {
		block, err := readBlock(r, buf, at, x.Size)
		if err != nil {
			return 0, err
		}
		// Skip blocks that cannot contain the line by counting, which is faster
		// than stopping at every line ending.
		if e.wide == 0 {
			if n := int64(bytes.Count(block, []byte{e.unit})); n < left {
				left -= n
				at += int64(len(block))
				continue
			}
		}
		for pos := 0; ; {
			n := e.afterNext(block[pos:])
			if n < 0 {
				break
			}
			pos += n
			if left--; left == 0 {
				return at + int64(pos), nil
			}
		}
		at += int64(len(block))
	}
	return x.Size, nil
}

// nextLineStart returns the offset just after the first line ending at or after
// at; without one, the end of the file. It skips strides without a line
// ending.
func (x *Index) nextLineStart(r io.ReaderAt, at int64) (int64, error) {
	e := x.lineEnds()
	buf := make([]byte, blockSize)
	for at < x.Size {
		if len(x.LinesBefore) > 0 && at%x.Stride == 0 {
			i := at / x.Stride
			for i+1 < int64(len(x.LinesBefore)) && x.LinesBefore[i+1] == x.LinesBefore[i] {
				i++
			}
			at = i * x.Stride
		}
		block, err := readBlock(r, buf, at, x.Size)
		if err != nil {
			return 0, err
		}
		if n := e.afterNext(block); n >= 0 {
			return at + int64(n), nil
		}
		at += int64(len(block))
		if len(x.LinesBefore) > 0 { // stop at the next stride, whose count is known
			start := (at - int64(len(block)) + x.Stride) / x.Stride * x.Stride
			at = min(at, start)
		}
	}
	return x.Size, nil
}

// readBlock reads the bytes at offset at of a file of size bytes into buf, as
// many as fit. It returns ErrChanged if the file is shorter. UTF-16 text needs
// even offsets and block sizes, which all callers use.
func readBlock(r io.ReaderAt, buf []byte, at, size int64) ([]byte, error) {
	want := min(int64(len(buf)), size-at)
	n, err := r.ReadAt(buf[:want], at)
	if int64(n) == want {
		return buf[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil, ErrChanged
	}
	return nil, err
}
