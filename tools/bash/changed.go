package main

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/state"
	"github.com/toolroom-mcp/toolroom/pkg/textfile"
)

const (
	// maxWatched is how many of the files seen last are looked at.
	maxWatched = 200
	// maxNamed is how many changed files are named.
	maxNamed = 8
	// maxHashed is up to which size a file's content tells whether it changed.
	maxHashed = 1 << 20
)

// maxWatches bounds the client sessions that are watched for.
const maxWatches = 64

// watches holds a watch for each session of the client.
type watches struct {
	store *state.Store

	mu    sync.Mutex
	all   map[string]*watch
	order []string // of all, the session used last at the end
}

// of returns the watch of a session. The session that was used longest ago is
// dropped where there are too many: its next command begins a new watch.
func (w *watches) of(session string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]*watch{}
	}
	if i := slices.Index(w.order, session); i >= 0 {
		w.order = slices.Delete(w.order, i, i+1)
	} else {
		w.all[session] = &watch{store: w.store.ForSession(session)}
	}
	if w.order = append(w.order, session); len(w.order) > maxWatches {
		delete(w.all, w.order[0])
		w.order = slices.Delete(w.order, 0, 1)
	}
	return w.all[session]
}

// watch finds the files that changed since the last view by one session of
// the client. It reports each change once.
type watch struct {
	store *state.Store

	mu    sync.Mutex
	known []state.Known
	said  map[string]state.Stamp // versions that are no news
}

// begin takes what changed before the first command as no news.
func (w *watch) begin(fs *sandbox.FS) {
	w.mu.Lock()
	first := w.said == nil
	w.mu.Unlock()
	if first {
		w.changed(fs)
	}
}

// changed lists the files in the roots that are not any more what was seen.
func (w *watch) changed(fs *sandbox.FS) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said == nil {
		w.said = map[string]state.Stamp{}
	}
	w.known = w.store.Recent(maxWatched, w.known)
	var names []string
	for _, k := range w.known {
		if !inRoots(fs, k.Path) || fs.Denied(k.Path) {
			continue
		}
		now := stampOf(fs, k.Path)
		last, said := w.said[k.Path]
		if now.Same(k.Stamp) || said && now.Same(last) {
			continue
		}
		if !said || !now.Same(last) {
			w.said[k.Path] = now
		}
		if now == (state.Stamp{}) {
			names = append(names, fs.Display(k.Path)+" (gone)")
		} else if !sameContent(fs, k) {
			names = append(names, fs.Display(k.Path))
		}
	}
	if len(w.said) > 4*maxWatched { // of files that are not watched any more
		w.said = map[string]state.Stamp{}
	}
	slices.Sort(names)
	return names
}

// stampOf is the zero value for a file that is gone.
func stampOf(fs *sandbox.FS, path string) state.Stamp {
	stat, err := fs.Quiet().Stat(path)
	if err != nil {
		return state.Stamp{}
	}
	stamp := state.StampOf(stat, time.Time{})
	stamp.Taken = 0
	return stamp
}

// sameContent reports whether a small file holds what was seen, whatever its
// times say.
func sameContent(fs *sandbox.FS, k state.Known) bool {
	f, err := fs.Quiet().Open(k.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	if f.Stat.Size > maxHashed || f.Stat.Size != k.Stamp.Size {
		return false
	}
	content, err := io.ReadAll(io.LimitReader(f, maxHashed+1))
	return err == nil && textfile.Sum(content).Full() == k.Etag
}

// changedWords names changed files for the last line.
func changedWords(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := "changed since you viewed: "
	if len(names) > maxNamed {
		return text + strings.Join(names[:maxNamed], ", ") + ", …"
	}
	return text + strings.Join(names, ", ")
}
