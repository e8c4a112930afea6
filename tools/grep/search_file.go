package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
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
		if w.dirLookup != nil && !masked && !looksLikeKey(raw) && (n > 0 || n == 0 && w.dirLookup.HasQuery()) {
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
	if w.dirLookup != nil && !masked && w.dirLookup.HasQuery() {
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
