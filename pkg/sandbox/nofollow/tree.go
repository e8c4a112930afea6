// Package nofollow works on the files of a directory by their paths and follows no
// link: neither in the directories of a path nor at its end. A process that puts a
// link in place of a directory in the meantime does not lead a write elsewhere, as
// os.Root allows within a root.
//
// A path is relative to the directory, with slashes. A path through a link is
// ELOOP, a path through a file is ENOTDIR; Missing holds for both.
package nofollow

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// Missing reports whether an error means that no file is at a path, or that a link
// is in it.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// Walk calls visit with each file of a tree, a directory before its entries, until
// visit returns false. info is nil where the file cannot be looked at. A directory
// that cannot be listed is visited twice, the second time with the error.
func (t *Tree) Walk(rel string, visit func(rel string, info fs.FileInfo, err error) bool) bool {
	info, err := t.Lstat(rel)
	if !visit(rel, info, err) {
		return false
	}
	if err != nil || !info.IsDir() {
		return true
	}
	names, err := t.Names(rel)
	if err != nil {
		return visit(rel, info, err)
	}
	for _, name := range names {
		if !t.Walk(path.Join(rel, name), visit) {
			return false
		}
	}
	return true
}
