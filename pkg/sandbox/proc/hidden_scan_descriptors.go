package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// holdDescriptor opens a file that was found, unless the scan already has a
// descriptor of it. The descriptor shows later whether the file was moved or
// deleted.
func (w *scanPass) holdDescriptor(path string, info os.FileInfo) {
	id, ok := fileIDOf(info)
	if !ok || w.descriptor(id) != nil || len(w.result.descriptors) >= maxHeldDescriptors {
		return
	}
	if f := openIdentified(path, id); f != nil {
		w.result.descriptors[id] = f
	}
}

// descriptor returns the open descriptor that this scan or an earlier one has
// of a file, or nil.
func (w *scanPass) descriptor(id fileID) *os.File {
	if k := w.hidden[id]; k != nil && k.descriptor != nil {
		return k.descriptor
	}
	return w.result.descriptors[id]
}

// retainVanished adds to result.hidden the files of earlier, the result of the
// last round, that have vanished: in each round, a file may be moved from a
// directory not read yet into one already read. If a descriptor shows that the
// file was deleted or moved out of the root, it is left out, since to mask a
// missing file would fail.
func (w *scanPass) retainVanished(earlier map[string]os.FileInfo) {
	var found map[fileID]bool
	for path, info := range earlier {
		if w.result.hidden[path] != nil {
			continue
		}
		if found == nil {
			found = map[fileID]bool{}
			for _, info := range w.result.hidden {
				id, _ := fileIDOf(info)
				found[id] = true
			}
		}
		id, ok := fileIDOf(info)
		if !ok || found[id] {
			continue
		}
		if f := w.descriptor(id); f != nil {
			if path, ok = currentPath(f); !ok || !supervise.IsBeneath(w.root, path) {
				continue
			}
		}
		w.result.hidden[path] = info
	}
}

// closeDescriptors closes the descriptors that updateHidden has not taken over.
func (f *scanResult) closeDescriptors() {
	for _, file := range f.descriptors {
		file.Close()
	}
	f.descriptors = nil
}
