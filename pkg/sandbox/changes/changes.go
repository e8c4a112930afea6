// Package changes keeps the changes of commands separate from the directories
// that the commands work in, until they are applied or discarded.
//
// A Set holds the pending changes to a list of roots. Each command runs over a
// new Layer of the set: overlayfs shows the root with the finished layers over
// it, and writes to the upper directory of the new layer. Only Set.Apply
// writes to the roots.
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
// DIR/ID/set.json describes a set. DIR/ID/bases holds the state of the roots'
// entries that commands changed. DIR/ID/lock is locked while a process uses
// the set. DIR/ID/LAYER/ROOT/{upper,work} are the directories of overlayfs;
// ROOT is the index of the root. In an upper directory a deleted file is a
// character device 0:0. A directory that replaces another one has the
// attribute user.overlay.opaque (Documentation/filesystems/overlayfs.rst).
//
// All data is on disk before a command can rely on it: after kill -9 the next
// process can open the set, and apply or discard it. Set.Apply moves entries
// one by one, so another call can complete an interrupted one.
package changes

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// Kind says how the file at a path differs from that in the root.
type Kind string

// The kinds. Touched means that content, type and mode are the same, and only
// times differ.
const (
	Created  Kind = "created"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
	Touched  Kind = "touched"
)

// An Entry names a changed path. A deleted directory is one entry; a created
// directory has an entry for each file in it.
type Entry struct {
	Root int    // index into Set.Roots
	Path string // relative to the root, with slashes; "." for the root's own mode
	Kind Kind
	Dir  bool // the old and the new version, if they exist, are directories

	// Linked means that the root's version is a file with other hard links; see
	// Change.OtherHardLinks.
	Linked bool
}

// A Change is the change of one file or directory by the layers of a set: Old is
// its version in the root, Kind and New are those after the layers are applied.
type Change struct {
	Entry
	Old fs.FileInfo // nil if Kind is Created
	New fs.FileInfo // nil if Kind is Deleted

	source string // the entry in the upper directory; "" if Kind is Deleted
}

// Entries returns the entry of each change, in the same order.
func Entries(list []Change) []Entry {
	all := make([]Entry, len(list))
	for i := range list {
		all[i] = list[i].Entry
	}
	return all
}

// Open opens the new version of a regular file for reading. The caller closes
// it.
func (c Change) Open() (*os.File, error) { return openLayerFile(c.source) }

// IsShown reports whether a list of changes should show the entry. Touched
// entries and created directories are left out.
func (e Entry) IsShown() bool {
	return e.Kind != Touched && (e.Kind != Created || !e.Dir)
}

// ShownEntries returns the entries that a list of changes should show: those for which
// Entry.IsShown is true, and created directories that contain none of these.
func ShownEntries(list []Entry) (shown []Entry) {
	type place struct {
		root int
		path string
	}
	filled := map[place]bool{} // directories above others of these entries
	for _, e := range list {
		for dir := path.Dir(e.Path); e.Kind != Touched && dir != "." && !filled[place{e.Root, dir}]; dir = path.Dir(dir) {
			filled[place{e.Root, dir}] = true
		}
	}
	for _, e := range list {
		if e.IsShown() || e.Kind == Created && !filled[place{e.Root, e.Path}] {
			shown = append(shown, e)
		}
	}
	return shown
}

// Mount describes an overlayfs mount that shows a root with the layers of a
// set, and writes to Upper.
type Mount struct {
	Root  string   // the root's path
	Lower []string // upper directories of finished layers, the newest first; the root itself is below them
	Upper string
	Work  string
}

// OtherHardLinks returns the number of other hard links of a changed or deleted file in
// the root, 0 for a new file. Overlayfs copies a file before a command writes to it, changes its
// mode or time, or moves it, so the command sees the other hard links unchanged, and nobody
// can tell a changed file from one that the command put in its place. Set.Apply replaces
// the file if its content is new. Otherwise it sets mode, time and attributes, which all
// hard links have in common.
func (c Change) OtherHardLinks() int {
	if c.Old == nil || !c.Old.Mode().IsRegular() {
		return 0
	}
	return max(int(linkCount(c.Old))-1, 0)
}

// maxLostEntries bounds the entries of a deleted directory that LostByCopy examines.
const maxLostEntries = 10_000

// LostByCopy names what a copy of a deleted entry of root, the root of the change, lacks:
// names of user attributes and access lists, which a command cannot set, and for a
// directory "hard links". If the command moved the entry, the new one is such a copy. It
// examines at most maxLostEntries entries of a directory.
func (c Change) LostByCopy(root string) (names []string) {
	if c.Kind != Deleted {
		return nil
	}
	tree, err := nofollow.Open(root)
	if err != nil {
		return nil
	}
	defer tree.Close() //nolint:errcheck // opened only for paths
	entries, linked := 0, false
	tree.Walk(c.Path, func(rel string, info fs.FileInfo, _ error) bool {
		attributes, _ := attributesAndHashes(tree, rel)
		names = append(names, attributes...)
		linked = linked || c.Dir && info != nil && info.Mode().IsRegular() && linkCount(info) > 1
		entries++
		return entries < maxLostEntries
	})
	slices.Sort(names)
	names = slices.Compact(names)
	if linked {
		names = append(names, "hard links")
	}
	return names
}

// absPath returns the absolute path of rel, a slash path relative to root.
func absPath(root, rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }
