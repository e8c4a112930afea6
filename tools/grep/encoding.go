package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/wording"
)

// guessed is a file that was searched in an encoding that nothing but its
// content tells.
type guessed struct {
	path     string
	encoding textfile.Encoding
}

// guess returns the encoding of a file that is neither UTF-8 nor marked as
// UTF-16, as view and edit detect it; "" for binary and damaged UTF-8.
func guess(ctx context.Context, r io.ReaderAt, size int64) textfile.Encoding {
	index, err := textfile.Scan(ctx, r, size, textfile.Options{})
	if err != nil || index.Binary || index.Encoding == textfile.UTF8 {
		return ""
	}
	return index.Encoding
}

// notUTF8 reports whether text, which has no byte order mark, is not UTF-8.
func notUTF8(text []byte) bool { return !textfile.ASCII(text) && !utf8.Valid(text) }

// readable returns the text of a file in memory as it is searched at first, and the
// encoding if that is a guess. It is not ok if the file is binary.
func (w *searcher) readable(raw []byte, masked bool) (text []byte, e textfile.Encoding, ok bool) {
	if textfile.Signed(raw) {
		return nil, "", false
	}
	if wide(raw) == "" && bytes.IndexByte(raw, 0) >= 0 {
		if e = textfile.GuessWide(raw); e == "" {
			return nil, "", false
		}
	}
	text = decoded(raw, e, masked)
	return text, e, bytes.IndexByte(text, 0) < 0
}

// tell counts the matches of text, and reports whether it may be in another
// encoding than UTF-8. Text that cannot match in any encoding is not foreign.
func (w *searcher) tell(text []byte) (n int, strange bool) {
	if !w.byLine && notUTF8(text) {
		return 0, true
	}
	w.foreign = false
	n = w.count(text)
	return n, w.foreign
}

// decoded returns a whole file's content as it is searched: decoded, without
// byte order mark, values masked. It shares raw's memory where it can.
func decoded(raw []byte, e textfile.Encoding, masked bool) []byte {
	if e == "" {
		return plain(raw, masked)
	}
	return plain([]byte(e.Decode(raw)), masked)
}

// noteGuess counts a file that was searched in a guessed encoding, and keeps a
// few names.
func (t *tally) noteGuess(path string, e textfile.Encoding) {
	if e == "" {
		return
	}
	t.guesses++
	t.guessed = append(t.guessed, guessed{strings.Clone(path), e})
	t.cutGuessed(2 * maxNamed)
}

// cutGuessed keeps the first names by path, if there are more than most.
func (t *tally) cutGuessed(most int) {
	if len(t.guessed) > most {
		slices.SortFunc(t.guessed, func(a, b guessed) int { return strings.Compare(a.path, b.path) })
		t.guessed = t.guessed[:maxNamed]
	}
}

// guessRemark names the files that were searched in a guessed encoding, where
// the pattern asks for more than ASCII: what a wrong guess hides is not found.
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
	return wording.Count(f.guesses, "file") + " searched in a guessed encoding: " + strings.Join(names, ", ")
}
