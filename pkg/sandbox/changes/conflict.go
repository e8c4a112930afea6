package changes

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// maxHashed bounds the size in bytes of files whose content is hashed. A larger
// file counts as changed if its size, inode or time of change differ.
const maxHashed = 64 << 20

// baseState is the state of an entry of a root just before a layer changed it.
// Apply compares it with the present entry to find out whether another program
// has changed the entry since.
type baseState struct {
	Absent  bool        `json:"absent,omitempty"`
	Unknown bool        `json:"unknown,omitempty"` // changed by others while the command ran
	Mode    fs.FileMode `json:"mode,omitempty"`
	Size    int64       `json:"size,omitempty"`
	Inode   uint64      `json:"inode,omitempty"`
	Changed int64       `json:"changed,omitempty"` // time of change, Unix nanoseconds; 0: not compared
	Hash    string      `json:"hash,omitempty"`    // SHA-256 of the content, or of a link's target
	// Modified is the time of modification in Unix nanoseconds. 0: not known, or another
	// program changed the directory while the command ran.
	Modified int64 `json:"modified,omitempty"`
	// Attributes are the names of the attributes that Apply removes if a command did,
	// Values the hashes of their values. HasValues is false for a state without them.
	Attributes []string `json:"attributes,omitempty"`
	Values     []string `json:"values,omitempty"`
	HasValues  bool     `json:"has_values,omitempty"`
}

// baseStates holds the states of one root's entries, by path.
type baseStates map[string]baseState

// stateOfEntry returns the state of an existing entry. began is the start of
// the command in Unix nanoseconds: a file changed later gets Unknown; 0 skips
// that check. The content of a file is hashed only if content is set.
func stateOfEntry(tree *nofollow.Tree, rel string, info fs.FileInfo, began int64, content bool) baseState {
	ino, changed := inodeAndChangeTime(info)
	d := baseState{Mode: info.Mode(), Size: info.Size(), Inode: ino, Changed: changed, Modified: info.ModTime().UnixNano()}
	if info.IsDir() {
		d.Size, d.Changed = 0, 0 // its entries have their own records
		if began != 0 && changed > began {
			d.Modified = 0
		}
		return d
	}
	d.Unknown = began != 0 && changed > began
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err := tree.Readlink(rel); err == nil {
			d.Hash = hashBytes([]byte(target))
		}
	case content && info.Mode().IsRegular() && info.Size() <= maxHashed:
		if f, err := tree.OpenFile(rel); err == nil {
			d.Hash = hashReader(f)
			f.Close() //nolint:errcheck // only read
		}
	}
	if d.Hash != "" && !isTimeSettled(changed, time.Now().UnixNano()) {
		d.Changed = 0 // the hash shows the next change
	}
	return d
}

// clockStep is longer than the interval at which kernels update the clock for
// file times.
const clockStep = 20 * time.Millisecond

// isTimeSettled reports whether a change after now will certainly have a later time
// of change than changed. Both are Unix nanoseconds.
func isTimeSettled(changed, now int64) bool { return now-changed > int64(clockStep) }

// deleteApplied deletes the state at an applied change. For a removed directory it
// also deletes the states of its entries.
func (b baseStates) deleteApplied(c Change) {
	delete(b, c.Path)
	if c.Old == nil || !c.Old.IsDir() || c.New != nil && c.New.IsDir() {
		return
	}
	for other := range b {
		if strings.HasPrefix(other, c.Path+"/") {
			delete(b, other)
		}
	}
}

// conflictReason returns the reason why a change cannot be applied to the root
// in its present state; "" if it can. Mode, time and attributes that only the command or
// only another program has changed are no reason; see metadata_conflict.go.
func (b baseStates) conflictReason(tree *nofollow.Tree, c Change) string {
	was, known := b[c.Path]
	info, err := tree.Lstat(c.Path)
	switch {
	case err != nil && !nofollow.IsMissing(err):
		return "cannot be read: " + err.Error()
	case err != nil: // it is not there
		if known && was.Absent || c.Kind == Deleted {
			return ""
		}
		return "was deleted in the meantime"
	case c.New != nil && c.New.IsDir() && info.IsDir():
		return was.dirMetaConflict(tree, c, info)
	case c.New != nil && isAlreadyApplied(tree, c, info):
		return was.metaConflict(tree, c, info)
	case !known || was.Unknown:
		return "was changed while the command ran"
	case was.Absent:
		return "was created in the meantime"
	case !was.isUnchanged(tree, c.Path, info):
		return "was changed in the meantime"
	case info.IsDir():
		return b.deleteConflictReason(tree, c.Path)
	}
	return was.metaConflict(tree, c, info)
}

// isUnchanged reports whether the entry at rel, described by info, still has
// this state.
func (d baseState) isUnchanged(tree *nofollow.Tree, rel string, info fs.FileInfo) bool {
	ino, changed := inodeAndChangeTime(info)
	switch {
	case info.Mode() != d.Mode:
		return false
	case info.IsDir():
		return true
	case ino == d.Inode && changed == d.Changed && info.Size() == d.Size:
		return true
	case d.Hash == "" || info.Size() != d.Size:
		return false
	}
	return stateOfEntry(tree, rel, info, 0, true).Hash == d.Hash
}

// deleteConflictReason returns the reason why a directory must not be deleted: an
// entry in it that was changed or added. It returns "" if it may be deleted.
// Missing entries are no reason.
func (b baseStates) deleteConflictReason(tree *nofollow.Tree, dir string) (why string) {
	tree.Walk(dir, func(rel string, info fs.FileInfo, err error) bool {
		was, known := b[rel]
		switch {
		case err != nil && errors.Is(err, fs.ErrNotExist):
		case err == nil && info.IsDir() && was.HasValues && !was.hasAttributes(attributesAndHashes(tree, rel)):
			why = "has other extended attributes than before the command"
			if rel != dir {
				why = "holds " + path.Base(rel) + ", which " + why
			}
		case err == nil && rel == dir:
		case err == nil && known && !was.Unknown && was.isUnchanged(tree, rel, info):
		default:
			why = "holds " + path.Base(rel) + ", which was changed in the meantime"
		}
		return why == ""
	})
	return why
}

// isAlreadyApplied reports whether a file of the root, described by info, has the
// content and mode of the change.
func isAlreadyApplied(tree *nofollow.Tree, c Change, info fs.FileInfo) bool {
	if c.New == nil || info.Mode() != c.New.Mode() || info.Mode().IsRegular() && info.Size() != c.New.Size() {
		return false
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		is, _ := tree.Readlink(c.Path)
		want, err := os.Readlink(c.source)
		return err == nil && is == want
	}
	same, err := hasSameContent(tree, c.Path, c.source)
	return err == nil && same
}
