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

// watch finds the files that changed since they were last viewed. Each change
// is said once.
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
	stat, err := fs.Stat(path)
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
	f, err := fs.Open(k.Path)
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
