package dirtree

import (
	"bytes"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxCountedSize is the largest file whose lines are counted, in bytes.
const maxCountedSize = 1 << 20

// addLineCount sets row.Lines to the number of lines of the file name, unless
// the file is binary or cannot be read. After the deadline it does not read the
// file and sets countsOmitted.
func (k *rowReader) addLineCount(name string, size int64, row *shownRow) {
	if size > 0 && time.Now().After(k.deadline) {
		k.countsOmitted = true
		return
	}
	text, _, err := k.dir.ReadFile(name, k.buffer[:0], maxCountedSize)
	if err != nil {
		if toolerr.Is(err, toolerr.PermissionDenied) {
			row.Error = errorWithoutPath(err)
		}
		return
	}
	k.buffer = text
	if n, ok := countLines(text); ok {
		row.Lines = &n
	}
}

// countLines returns the number of lines of text, including a last line without
// a line feed. ok is false for binary content.
func countLines(text []byte) (n int, ok bool) {
	feed := []byte{'\n'}
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		return countUTF16Lines(text[2:], 1), true
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return countUTF16Lines(text[2:], 0), true
	case bytes.IndexByte(text, 0) >= 0 || textfile.HasBinarySignature(text):
		return 0, false
	}
	n = bytes.Count(text, feed)
	if len(text) > 0 && !bytes.HasSuffix(text, feed) {
		n++
	}
	return n, true
}

// countUTF16Lines returns the number of lines of UTF-16 text. high is the index
// of the high byte in a unit: 1 for little-endian, 0 for big-endian.
func countUTF16Lines(text []byte, high int) int {
	n, ended := 0, true
	for ; len(text) >= 2; text = text[2:] {
		if ended = text[high] == 0 && text[1-high] == '\n'; ended {
			n++
		}
	}
	if !ended {
		n++
	}
	return n
}
