package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// hold opens a file that was found, unless the search holds it already: its descriptor
// tells later whether the file was moved or deleted.
func (w *scan) hold(path string, info os.FileInfo) {
	id, ok := idOf(info)
	if !ok || w.descriptor(id) != nil || len(w.all.held) >= mostHeld {
		return
	}
	if f := holdFile(path, id); f != nil {
		w.all.held[id] = f
	}
}

// descriptor returns the one that is held of a file; nil: none.
func (w *scan) descriptor(id fileID) *os.File {
	if k := w.hidden[id]; k != nil && k.file != nil {
		return k.file
	}
	return w.all.held[id]
}

// retain adds the files that were found earlier in this search and are not where they
// were: a file may be moved from a directory that is not read yet into one that was,
// in each round but one. Those that were deleted or moved out of the root are left out,
// if a descriptor of them is held: to mask what is gone would fail.
func (w *scan) retain(earlier map[string]os.FileInfo) {
	var found map[fileID]bool
	for path, info := range earlier {
		if w.all.paths[path] != nil {
			continue
		}
		if found == nil {
			found = map[fileID]bool{}
			for _, info := range w.all.paths {
				id, _ := idOf(info)
				found[id] = true
			}
		}
		id, ok := idOf(info)
		if !ok || found[id] {
			continue
		}
		if f := w.descriptor(id); f != nil {
			if path, ok = pathOf(f); !ok || !supervise.Beneath(w.root, path) {
				continue
			}
		}
		w.all.paths[path] = info
	}
}

// release closes the descriptors that nobody took.
func (f *found) release() {
	for _, file := range f.held {
		file.Close()
	}
	f.held = nil
}
