package main

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

const (
	// maxWatched bounds the most recently viewed files that are checked.
	maxWatched = 200
	// maxNamed bounds the changed files that an answer names.
	maxNamed = 8
	// maxHashed is the size up to which contents are compared, in bytes.
	maxHashed = 1 << 20
)

// maxWatches bounds the client sessions with a viewWatch.
const maxWatches = 64

// viewWatches holds a viewWatch for each client session. It is safe for
// concurrent use.
type viewWatches struct {
	store *state.Store

	mu    sync.Mutex
	all   map[string]*viewWatch // by session
	order []string              // keys of all, most recently used last
}

// forSession returns the viewWatch of a session. Above maxWatches it drops the
// least recently used one; the next command of that session begins a new one.
func (w *viewWatches) forSession(session string) *viewWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]*viewWatch{}
	}
	if i := slices.Index(w.order, session); i >= 0 {
		w.order = slices.Delete(w.order, i, i+1)
	} else {
		w.all[session] = &viewWatch{store: w.store.ForSession(session)}
	}
	if w.order = append(w.order, session); len(w.order) > maxWatches {
		delete(w.all, w.order[0])
		w.order = slices.Delete(w.order, 0, 1)
	}
	return w.all[session]
}

// viewWatch finds the files changed since a client session last viewed them. It
// reports each change once. It is safe for concurrent use.
type viewWatch struct {
	store *state.Store

	mu   sync.Mutex
	seen []state.SeenVersion // the most recently viewed versions
	// versions that were reported or need no report, by path; nil before
	// the first command
	reported map[string]state.Stamp
}

// skipEarlierChanges makes later calls of changedFiles leave out changes from
// before the first command. Only the first call has an effect.
func (w *viewWatch) skipEarlierChanges(fsys *sandbox.FS) {
	w.mu.Lock()
	first := w.reported == nil
	w.mu.Unlock()
	if first {
		w.changedFiles(fsys)
	}
}

// changedFiles returns the files in the roots that differ from the viewed version and
// were not reported yet, for display, sorted. They count as reported after that.
func (w *viewWatch) changedFiles(fsys *sandbox.FS) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reported == nil {
		w.reported = map[string]state.Stamp{}
	}
	w.seen = w.store.RecentlySeen(maxWatched, w.seen)
	var names []string
	for _, k := range w.seen {
		if !isInRoots(fsys, k.Path) || fsys.Denied(k.Path) {
			continue
		}
		now := stampOf(fsys, k.Path)
		last, said := w.reported[k.Path]
		if now.SameVersion(k.Stamp) || said && now.SameVersion(last) {
			continue
		}
		if !said || !now.SameVersion(last) {
			w.reported[k.Path] = now
		}
		if now == (state.Stamp{}) {
			names = append(names, fsys.Display(k.Path)+" (gone)")
		} else if !hasViewedContent(fsys, k) {
			names = append(names, fsys.Display(k.Path))
		}
	}
	if len(w.reported) > 4*maxWatched { // drop files that are no longer watched
		w.reported = map[string]state.Stamp{}
	}
	slices.Sort(names)
	return names
}

// stampOf returns a file's stamp, or the zero value for a missing file.
func stampOf(fsys *sandbox.FS, path string) state.Stamp {
	stat, err := fsys.WithNearbySuggestions().Stat(path)
	if err != nil {
		return state.Stamp{}
	}
	stamp := state.StampOf(stat, time.Time{})
	stamp.Taken = 0
	return stamp
}

// hasViewedContent reports whether a file of up to maxHashed has the viewed content,
// regardless of its times.
func hasViewedContent(fsys *sandbox.FS, k state.SeenVersion) bool {
	f, err := fsys.WithNearbySuggestions().Open(k.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	if f.Stat.Size > maxHashed || f.Stat.Size != k.Stamp.Size {
		return false
	}
	content, err := io.ReadAll(io.LimitReader(f, maxHashed+1))
	return err == nil && textfile.EtagOf(content).Full() == k.Etag
}

// changedText returns the part of the last line that names changed files; ""
// for none.
func changedText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := "changed since you viewed: "
	if len(names) > maxNamed {
		return text + strings.Join(names[:maxNamed], ", ") + ", …"
	}
	return text + strings.Join(names, ", ")
}
