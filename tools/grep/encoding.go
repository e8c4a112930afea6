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

// guessedFile is a file that was searched in an encoding detected from its
// content.
type guessedFile struct {
	path     string
	encoding textfile.Encoding
}

// guessEncoding returns the encoding, detected as view and edit do, of a file
// that is neither UTF-8 nor marked as UTF-16. It returns "" for binary files
// and damaged UTF-8.
func guessEncoding(ctx context.Context, r io.ReaderAt, size int64) textfile.Encoding {
	index, err := textfile.Scan(ctx, r, size, textfile.Options{})
	if err != nil || index.Binary || index.Encoding == textfile.UTF8 {
		return ""
	}
	return index.Encoding
}

// isNotUTF8 reports whether text, without a byte order mark, is not valid
// UTF-8.
func isNotUTF8(text []byte) bool { return !textfile.IsASCII(text) && !utf8.Valid(text) }

// decodeFile returns the content of a file to search, with secrets masked if
// masked is set. e is "" unless the encoding was guessed from zero bytes; a
// one-byte encoding is guessed only after the search has met invalid UTF-8. ok
// is false if the file is binary.
func (w *searcher) decodeFile(raw []byte, masked bool) (text []byte, e textfile.Encoding, ok bool) {
	if textfile.HasBinarySignature(raw) {
		return nil, "", false
	}
	if bomEncoding(raw) == "" && bytes.IndexByte(raw, 0) >= 0 {
		if e = textfile.GuessUTF16(raw); e == "" {
			return nil, "", false
		}
	}
	text = decodeSearchable(raw, e, masked)
	return text, e, bytes.IndexByte(text, 0) < 0
}

// decodeSearchable returns a whole file's content as searched: decoded from e,
// without byte order mark, and with secrets masked if masked is set. "" for e
// means UTF-8 or the encoding of a byte order mark. It may share raw's memory.
func decodeSearchable(raw []byte, e textfile.Encoding, masked bool) []byte {
	if e == "" {
		return searchableText(raw, masked)
	}
	return searchableText([]byte(e.Decode(raw)), masked)
}

// guessedEncodingsNote names the files searched in a guessed encoding, if the pattern has
// characters beyond ASCII: a wrong guess hides matches of these. Otherwise it
// returns "".
func (q *query) guessedEncodingsNote(f *searchResult) string {
	if f.guessCount == 0 || textfile.IsASCII([]byte(q.args.Pattern)) {
		return ""
	}
	f.trimGuesses(maxNamedPaths)
	slices.SortFunc(f.guessedFiles, func(a, b guessedFile) int { return strings.Compare(a.path, b.path) })
	var names []string
	for _, g := range f.guessedFiles {
		names = append(names, q.shownPath(f.abs, g.path)+" "+string(g.encoding))
	}
	if f.guessCount > len(names) {
		names = append(names, "…")
	}
	return textfmt.Count(f.guessCount, "file") + " searched in a guessed encoding: " + strings.Join(names, ", ")
}

// bomEncoding returns the encoding of a UTF-16 byte order mark at the beginning
// of head, or "".
func bomEncoding(head []byte) textfile.Encoding {
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
	if e := bomEncoding(raw); e != "" {
		raw = []byte(e.Decode(raw[2:]))
	} else {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if masked {
		raw = secret.Mask(raw)
	}
	return raw
}
