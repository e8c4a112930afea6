package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// hold opens a file that was found, unless the search already has a descriptor
// of it. The descriptor shows later whether the file was moved or deleted.
func (w *scanPass) hold(path string, info os.FileInfo) {
	id, ok := idOf(info)
	if !ok || w.descriptor(id) != nil || len(w.all.held) >= mostHeld {
		return
	}
	if f := holdFile(path, id); f != nil {
		w.all.held[id] = f
	}
}

// descriptor returns the descriptor held of a file, or nil.
func (w *scanPass) descriptor(id fileID) *os.File {
	if k := w.hidden[id]; k != nil && k.file != nil {
		return k.file
	}
	return w.all.held[id]
}

// retain adds the files that were found earlier in this search and have
// vanished from their paths: in each round, a file may be moved from a
// directory not read yet into one already read. If a descriptor shows that the
// file was deleted or moved out of the root, it is left out, since to mask a
// missing file would fail.
func (w *scanPass) retain(earlier map[string]os.FileInfo) {
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

// release closes the descriptors that are still held.
func (f *scanResult) release() {
	for _, file := range f.held {
		file.Close()
	}
	f.held = nil
}
