// Package changes keeps the changes of commands apart from the directories that
// the commands work in, until somebody applies or discards them.
//
// A Set holds the pending changes to one list of roots. Each command runs over a
// Layer of the set: overlayfs shows the root, and beneath the layer the finished
// layers of the set, and writes into the layer's upper directory. The roots
// themselves are not written until Set.Apply.
//
//	store := changes.New(dir)
//	set, err := store.Create(roots)
//	layer, err := set.Begin("npm install")
//	// mount layer.Mounts() over the roots and run the command
//	entries, err := layer.End()
//	list, err := set.Changes()
//	report, err := set.Apply(nil, refuse) // or set.Discard()
//
// # Format
//
// DIR/ID/set.json describes a set, DIR/ID/bases says what the roots held where
// commands changed something, DIR/ID/lock is locked while a process uses the set,
// and DIR/ID/LAYER/ROOT/{upper,work} are the directories that overlayfs
// works with, ROOT being the index of the root. In an upper directory a deleted
// file is a character device 0:0, and a directory that replaces another one has
// the attribute user.overlay.opaque (Documentation/filesystems/overlayfs.rst).
//
// Everything is on disk before a command can rely on it: after kill -9 the next
// process opens the set and applies or discards it. Set.Apply moves entry by
// entry, so that an interrupted one is completed by another.
package changes

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Kind says what happened to a path.
type Kind string

// The kinds. Touched means that only times or the mode's owner bits differ in
// nothing but time: the content, type and mode are the same.
const (
	Created  Kind = "created"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
	Touched  Kind = "touched"
)

// An Entry says what happened at one path. Deleted directories are one entry;
// created directories are an entry for each file in them.
type Entry struct {
	Root int    // index into Set.Roots
	Path string // relative to the root, with slashes; "." where the root's own mode changed
	Kind Kind
	Dir  bool // both versions, where they exist, are directories
}

// A Change is the difference between a root and the same root with the layers
// of a set applied, at one path.
type Change struct {
	Entry
	Old fs.FileInfo // nil where Kind is Created
	New fs.FileInfo // nil where Kind is Deleted

	source string // the entry in the upper directory; "" where Kind is Deleted
}

// Entries returns the entries of changes.
func Entries(list []Change) []Entry {
	all := make([]Entry, len(list))
	for i := range list {
		all[i] = list[i].Entry
	}
	return all
}

// Open opens the file that the change makes, for reading.
func (c Change) Open() (*os.File, error) { return openLayerFile(c.source) }

// Shown reports whether the entry is worth showing: the files, and directories
// that were deleted or whose mode changed.
func (e Entry) Shown() bool {
	return e.Kind != Touched && (e.Kind != Created || !e.Dir)
}

// Mount says how overlayfs is mounted over a root.
type Mount struct {
	Root  string   // the root's path
	Lower []string // finished upper directories, the newest first; beneath them is the root itself
	Upper string
	Work  string
}

// OtherNames returns how many other names the changed file has in the root. They keep
// the old content, since overlayfs copies the file that a command writes.
func (c Change) OtherNames() int {
	if c.Old == nil || c.New == nil || c.Kind != Modified || !c.Old.Mode().IsRegular() {
		return 0
	}
	return max(int(names(c.Old))-1, 0)
}

// abs returns the path of an entry of a root.
func abs(root, rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }
