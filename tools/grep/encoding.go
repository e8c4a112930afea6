package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// guessed is a file that was searched in an encoding detected from its content.
type guessed struct {
	path     string
	encoding textfile.Encoding
}

// guess returns the encoding, detected as view and edit do, of a file that is
// neither UTF-8 nor marked as UTF-16; "" for binary files and damaged UTF-8.
func guess(ctx context.Context, r io.ReaderAt, size int64) textfile.Encoding {
	index, err := textfile.Scan(ctx, r, size, textfile.Options{})
	if err != nil || index.Binary || index.Encoding == textfile.UTF8 {
		return ""
	}
	return index.Encoding
}

// notUTF8 reports whether text, without a byte order mark, is not valid UTF-8.
func notUTF8(text []byte) bool { return !textfile.ASCII(text) && !utf8.Valid(text) }

// readable returns the text of a file in memory for the first search, and the
// encoding if it was guessed. ok is false if the file is binary.
func (w *searcher) readable(raw []byte, masked bool) (text []byte, e textfile.Encoding, ok bool) {
	if textfile.HasBinarySignature(raw) {
		return nil, "", false
	}
	if wideEncoding(raw) == "" && bytes.IndexByte(raw, 0) >= 0 {
		if e = textfile.GuessWide(raw); e == "" {
			return nil, "", false
		}
	}
	text = decoded(raw, e, masked)
	return text, e, bytes.IndexByte(text, 0) < 0
}

// decoded returns a whole file's content as searched: decoded from e, without
// byte order mark, and with secrets masked if masked is set. It may share raw's
// memory.
func decoded(raw []byte, e textfile.Encoding, masked bool) []byte {
	if e == "" {
		return searchableText(raw, masked)
	}
	return searchableText([]byte(e.Decode(raw)), masked)
}

// noteGuess counts a file searched in a guessed encoding and keeps a few names.
func (t *tally) noteGuess(path string, e textfile.Encoding) {
	if e == "" {
		return
	}
	t.guesses++
	t.guessed = append(t.guessed, guessed{strings.Clone(path), e})
	t.cutGuessed(2 * maxNamed)
}

// cutGuessed keeps the first few names by path, if there are more than most.
func (t *tally) cutGuessed(most int) {
	if len(t.guessed) > most {
		slices.SortFunc(t.guessed, func(a, b guessed) int { return strings.Compare(a.path, b.path) })
		t.guessed = t.guessed[:maxNamed]
	}
}

// guessRemark names the files searched in a guessed encoding, if the pattern
// has characters beyond ASCII: a wrong guess hides matches of those.
func (q *query) guessRemark(f *found) string {
	if f.guesses == 0 || textfile.ASCII([]byte(q.args.Pattern)) {
		return ""
	}
	f.cutGuessed(maxNamed)
	slices.SortFunc(f.guessed, func(a, b guessed) int { return strings.Compare(a.path, b.path) })
	var names []string
	for _, g := range f.guessed {
		names = append(names, q.shownPath(f.abs, g.path)+" "+string(g.encoding))
	}
	if f.guesses > len(names) {
		names = append(names, "…")
	}
	return textfmt.Count(f.guesses, "file") + " searched in a guessed encoding: " + strings.Join(names, ", ")
}

// wideEncoding returns the encoding of a UTF-16 byte order mark, or "".
func wideEncoding(head []byte) textfile.Encoding {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return textfile.UTF16LE
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return textfile.UTF16BE
	}
	return ""
}

// searchableText returns a whole file's content as searched: decoded, without
// byte order mark, and with secrets masked if masked is set. It may share raw's
// memory.
func searchableText(raw []byte, masked bool) []byte {
	if e := wideEncoding(raw); e != "" {
		raw = []byte(e.Decode(raw[2:]))
	} else {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if masked {
		raw = secret.Mask(raw)
	}
	return raw
}
