package changes

import (
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// checkedEntry is the state of an entry of the root when findConflicts compared it. It
// has no time of change and no number of hard links: Apply itself changes these of a
// file when it replaces another hard link of it.
type checkedEntry struct {
	inode    uint64
	mode     fs.FileMode
	size     int64     // 0 for a directory
	modified time.Time // zero for a directory
}

// checkedEntryOf returns the state that info, of an existing entry, describes.
func checkedEntryOf(info fs.FileInfo) checkedEntry {
	e := checkedEntry{mode: info.Mode()}
	e.inode, _ = inodeAndChangeTime(info)
	if !info.IsDir() {
		e.size, e.modified = info.Size(), info.ModTime()
	}
	return e
}

// addChecked adds the present state of the entry of a change to p.checked. If the
// change removes a directory, it also adds the states of the entries in it.
func (p *plan) addChecked(c Change) {
	if !removesDir(c) {
		if info, err := p.tree.Lstat(c.Path); err == nil {
			p.checked[c.Path] = checkedEntryOf(info)
		}
		return
	}
	p.tree.Walk(c.Path, func(rel string, info fs.FileInfo, err error) bool {
		if err == nil {
			p.checked[rel] = checkedEntryOf(info)
		}
		return true
	})
}

// removesDir reports whether a change removes a directory with its content.
func removesDir(c Change) bool {
	return c.Old != nil && c.Old.IsDir() && (c.New == nil || !c.New.IsDir())
}

// laterConflict returns the reason why a change cannot be applied any more, because
// another program has changed the entry, or an entry of a directory that the change
// removes, after findConflicts. It returns "" if the change can be applied.
func (p *plan) laterConflict(c Change) (why string) {
	if p.isReplaced[c.Path] {
		return ""
	}
	was, existed := p.checked[c.Path]
	now, err := p.tree.Lstat(c.Path)
	switch {
	case err != nil && !existed && nofollow.IsMissing(err):
		return ""
	case err != nil || !existed:
		return p.known.conflictReason(p.tree, c)
	case was.mode.IsDir() && now.IsDir() && removesDir(c):
		return p.laterChangeIn(c.Path)
	case was.mode.IsDir() && now.IsDir(), p.isAsChecked(was, now):
		return ""
	}
	return p.known.conflictReason(p.tree, c)
}

// laterChangeIn returns the reason why a directory must not be removed: an entry in it
// that another program has changed or added after findConflicts. It returns "" without
// such an entry. Missing entries are no reason.
func (p *plan) laterChangeIn(dir string) (why string) {
	p.tree.Walk(dir, func(rel string, info fs.FileInfo, err error) bool {
		was, existed := p.checked[rel]
		switch {
		case err != nil && errors.Is(err, fs.ErrNotExist), err == nil && rel == dir:
		case err == nil && !existed:
			why = "holds " + path.Base(rel) + ", which was created in the meantime"
		case err != nil || !p.isAsChecked(was, info):
			why = "holds " + path.Base(rel) + ", which was changed in the meantime"
		}
		return why == ""
	})
	return why
}

// isAsChecked reports whether info, an entry's state now, has the inode, mode, size and
// modification time in was. If this plan has set the mode and the time of the file by
// another hard link, only inode and size are compared.
func (p *plan) isAsChecked(was checkedEntry, info fs.FileInfo) bool {
	now := checkedEntryOf(info)
	if p.setInPlace[now.inode] {
		return was.inode == now.inode && was.size == now.size
	}
	return was.inode == now.inode && was.mode == now.mode && was.size == now.size && was.modified.Equal(now.modified)
}
