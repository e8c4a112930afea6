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

// searchEntry searches a regular file, with the index if possible. It returns
// the context's error.
func (w *searcher) searchEntry(e *walk.Entry) error {
	masked := e.MaybeSecret && w.fs.Masked(filepath.Join(w.abs, e.Path))
	if w.dirLookup != nil && !masked {
		if w.skipByIndex(e) {
			return nil
		}
		if w.keptText != nil {
			st := w.keptStat
			w.searchInMemory(e.Path, w.keptText, st, st.Nlink > 1 && w.fs.MaskedFile(filepath.Join(w.abs, e.Path), st))
			return w.ctx.Err()
		}
	} else if !masked {
		w.recordUnknown(e.Path)
	}
	w.filesRead++
	raw, st, err := e.Dir.ReadFile(e.Name, w.buf, w.maxReadWhole(masked))
	switch {
	case err == nil:
		w.buf = raw
		masked = masked || st.Nlink > 1 && w.fs.MaskedFile(filepath.Join(w.abs, e.Path), st)
		n := w.searchInMemory(e.Path, raw, st, masked)
		if w.dirLookup != nil && !masked && !beginsLikeKey(raw) && (n > 0 || n == 0 && w.dirLookup.HasQuery()) {
			w.dirLookup.KeepText(index.KeyOf(st), raw)
		}
	case toolerr.Is(err, toolerr.TooLarge):
		file, st, err := e.Dir.Open(e.Name)
		if err != nil {
			w.countSkipped(e.Path, outcomeOf(err))
			return nil
		}
		defer file.Close()
		masked = masked || st.Nlink > 1 && w.fs.MaskedFile(filepath.Join(w.abs, e.Path), st)
		w.searchLarge(e.Path, file, st, masked, false)
	default:
		w.countSkipped(e.Path, outcomeOf(err))
	}
	return w.ctx.Err()
}

// maxReadWhole returns the size of the largest file to read as a whole: the largest whose
// text the index may keep, or else the size of the buffer. masked says that the file's
// values must be masked; the index keeps no such texts.
func (w *searcher) maxReadWhole(masked bool) int64 {
	size := int64(cap(w.buf) - 1)
	if w.dirLookup != nil && !masked && w.dirLookup.HasQuery() {
		size = max(size, index.TextSize)
	}
	return size
}

// outcomeOf returns the outcome for an error of opening or reading.
func outcomeOf(err error) outcome {
	if toolerr.Is(err, toolerr.SpecialFile) {
		return special
	}
	return unreadable
}

// searchInMemory searches a file in memory. It returns the number of matches, or -1 if
// the file is not to be searched. masked says that the values in raw must be masked
// before the search.
func (w *searcher) searchInMemory(path string, raw []byte, st sandbox.Stat, masked bool) int {
	if int64(len(raw)) > w.MaxFileSize && !w.anySize {
		w.countSkipped(path, tooLarge)
		return -1
	}
	if w.keptText == nil && w.isDeniedKey(path, raw) { // the index keeps no keys
		w.outcomes[secretFile]++
		return -1
	}
	text, e, ok := w.decodeFile(raw, masked)
	if !ok {
		w.outcomes[binary]++
		return -1
	}
	n, strange := w.countUTF8(text)
	if strange {
		if e == "" && bomEncoding(raw) == "" {
			e = guessEncoding(w.ctx, bytes.NewReader(raw), int64(len(raw)))
		}
		n = w.countMatches(decodeSearchable(raw, e, masked))
	}
	w.recordSearched(path, st, n, e)
	return n
}

// recordSearched counts a searched file with n matches, and adds it to the
// results if n is not 0. e is a guessed encoding, or "".
func (w *searcher) recordSearched(path string, st sandbox.Stat, n int, e textfile.Encoding) {
	w.outcomes[searched]++
	w.addGuess(path, e)
	if w.outcomes[searched]%256 == 0 {
		mcpkit.Progress(w.ctx, float64(w.filesDone.Add(256)), 0, "files searched")
	}
	if n == 0 {
		return
	}
	w.matchingFiles++
	w.matches += n
	m := matchingFile{path: path, count: n, keptText: w.keptText, encoding: e}
	w.showable += m.showableCount(w.query)
	if w.args.Sort != "path" {
		m.mtime = st.ModNano()
	}
	if w.top.WouldKeep(m) {
		m.path = strings.Clone(m.path) // otherwise it keeps the memory of a whole directory
		if m.keptText != nil {
			m.starts = slices.Clone(w.starts)
		}
		w.top.Add(m)
	}
}

// showableCount returns how many entries a file has to show in the output mode:
// matches up to max_per_file, or 1.
func (m *matchingFile) showableCount(q *query) int {
	if q.args.OutputMode != modeContent {
		return 1
	}
	return min(m.count, q.perFile)
}
