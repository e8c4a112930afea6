package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// file searches a regular file, with the index if possible.
func (w *searcher) file(e *walk.Entry) error {
	masked := e.MaybeSecret && w.fs.Masked(filepath.Join(w.abs, e.Path))
	if w.dirLookup != nil && !masked {
		if w.skipByIndex(e) {
			return nil
		}
		if w.kept != nil {
			st := w.keptStat
			w.whole(e.Path, w.kept, st, st.Nlink > 1 && w.fs.MaskedFile(filepath.Join(w.abs, e.Path), st))
			return w.ctx.Err()
		}
	} else if !masked {
		w.remember(e.Path)
	}
	w.read++
	raw, st, err := e.Dir.ReadFile(e.Name, w.buf, w.maxWhole(masked))
	switch {
	case err == nil:
		w.buf = raw
		masked = masked || st.Nlink > 1 && w.fs.MaskedFile(filepath.Join(w.abs, e.Path), st)
		n := w.whole(e.Path, raw, st, masked)
		if w.dirLookup != nil && !masked && !looksLikeKey(raw) && (n > 0 || n == 0 && w.dirLookup.Selects()) {
			w.dirLookup.KeepText(index.KeyOf(st), raw)
		}
	case toolerr.Is(err, toolerr.TooLarge):
		file, st, err := e.Dir.Open(e.Name)
		if err != nil {
			w.skip(e.Path, failure(err))
			return nil
		}
		defer file.Close()
		masked = masked || st.Nlink > 1 && w.fs.MaskedFile(filepath.Join(w.abs, e.Path), st)
		w.stream(e.Path, file, st, masked, false)
	default:
		w.skip(e.Path, failure(err))
	}
	return w.ctx.Err()
}

// maxWhole returns the size of the largest file to read as a whole: the largest
// whose text the index may keep, or else the size of the buffer.
func (w *searcher) maxWhole(masked bool) int64 {
	size := int64(cap(w.buf) - 1)
	if w.dirLookup != nil && !masked && w.dirLookup.Selects() {
		size = max(size, index.TextSize)
	}
	return size
}

// failure returns the outcome for an error of reading.
func failure(err error) outcome {
	if toolerr.Is(err, toolerr.SpecialFile) {
		return special
	}
	return unreadable
}

// whole searches a file in memory, and returns the number of matches, or -1 if
// the file is not to be searched.
func (w *searcher) whole(path string, raw []byte, st sandbox.Stat, masked bool) int {
	if int64(len(raw)) > w.MaxFileSize && !w.anySize {
		w.skip(path, tooLarge)
		return -1
	}
	if w.kept == nil && w.isKey(path, raw) { // the index keeps no keys
		w.outcomes[secretFile]++
		return -1
	}
	text, e, ok := w.readable(raw, masked)
	if !ok {
		w.outcomes[binary]++
		return -1
	}
	n, strange := w.countText(text)
	if strange {
		if e == "" && wideEncoding(raw) == "" {
			e = guess(w.ctx, bytes.NewReader(raw), int64(len(raw)))
		}
		n = w.count(decoded(raw, e, masked))
	}
	w.record(path, st, n, e)
	return n
}

// looksLikeKey reports whether a file begins like a private key.
func looksLikeKey(raw []byte) bool { return secret.IsPrivateKey(raw[:min(len(raw), keyHead)]) }

// isKey reports whether a file is a private key that the user did not allow.
func (w *searcher) isKey(path string, raw []byte) bool {
	if !looksLikeKey(raw) {
		return false
	}
	file, err := w.fs.Open(filepath.Join(w.abs, filepath.FromSlash(path)))
	if err != nil {
		return true
	}
	file.Close()
	return false
}

// record records a file that was searched, with n matches.
func (w *searcher) record(path string, st sandbox.Stat, n int, e textfile.Encoding) {
	w.outcomes[searched]++
	w.noteGuess(path, e)
	if w.outcomes[searched]%256 == 0 {
		mcpkit.Progress(w.ctx, float64(w.done.Add(256)), 0, "files searched")
	}
	if n == 0 {
		return
	}
	w.files++
	w.matches += n
	m := match{path: path, count: n, kept: w.kept, encoding: e}
	w.entries += m.entries(w.query)
	if w.args.Sort != "path" {
		m.mtime = st.ModNano()
	}
	if w.top.Takes(m) {
		m.path = strings.Clone(m.path) // otherwise it keeps the memory of a whole directory
		if m.kept != nil {
			m.starts = slices.Clone(w.starts)
		}
		w.top.Add(m)
	}
}

// entries returns the number of entries that a file has to show in the output
// mode.
func (m *match) entries(q *query) int {
	if q.args.OutputMode != modeContent {
		return 1
	}
	return min(m.count, q.perFile)
}

// count counts the matches in a run of whole lines, or in a part of it if the
// context ends. In mode files_with_matches it stops at one.
func (w *searcher) count(text []byte) (n int) {
	w.starts = nil
	if !w.matcher.CrossesLines() { // otherwise the next match depends on the end of the previous one
		w.starts = w.places[:0]
	}
	m := w.matcher.For(text)
	for base := 0; base < len(text) && w.ctx.Err() == nil; {
		part := w.part(text[base:])
		if !w.args.Only && !w.countsSeparately() && w.args.OutputMode != modeFiles {
			var more int
			more, w.starts = w.matcher.Locate(part, base, w.starts)
			n, base = n+more, base+len(part)
			continue
		}
		base += len(part)
		hits := 0
		for hit, ok := m.Next(part, 0); ok; hit, ok = m.Next(part, hit.End) {
			hits++
			n += w.countHit(part, hit)
			if n > 0 && w.args.OutputMode == modeFiles {
				return 1
			}
		}
		if n == 0 && hits > 0 && w.countsSeparately() && !w.args.Only {
			n = 1 // the one at the end
		}
	}
	return n
}

// countsSeparately reports whether matches that share lines are counted
// separately, as ripgrep does if they may span lines.
func (w *searcher) countsSeparately() bool { return w.args.Multiline && w.args.OutputMode == modeCount }

// countHit returns the number of matches that a hit counts as: all matches if
// they are counted separately, all non-empty ones with -o, otherwise one. Like
// in ripgrep, an empty match at the end of a last line without an ending counts
// only if it is the only one.
func (w *searcher) countHit(text []byte, hit search.Hit) int {
	apart := w.countsSeparately()
	if !w.args.Only && !apart {
		return 1
	}
	n := 0
	w.matcher.Spans(text, hit, func(start, end int) bool {
		if end > start || apart && !w.args.Only && (end < len(text) || bytes.HasSuffix(text, newline)) {
			n++
		}
		return true
	})
	return n
}

// partSize bounds the text searched between two checks of the deadline.
const partSize = wholeSize

// part returns the beginning of a text to search at once: whole lines, or all
// of it if matches may span lines.
func (q *query) part(text []byte) []byte {
	if q.matcher.CrossesLines() || len(text) <= partSize {
		return text
	}
	end := bytes.IndexByte(text[partSize:], '\n')
	if end < 0 {
		return text
	}
	return text[:partSize+end+1]
}

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
