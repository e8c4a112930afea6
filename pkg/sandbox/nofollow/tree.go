// Package nofollow accesses the files of a directory by paths without
// following links, neither in the directories of a path nor at its end. If
// another process meanwhile replaces a directory by a link, no file is written
// at the link's target; os.Root would allow that within its root.
//
// A path is relative to the directory, with slashes. The error is ELOOP for a
// path with a link in it, ENOTDIR for a path with another file in it. IsMissing
// returns true for both.
package nofollow

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// IsMissing reports whether err means that a path leads to no file: the file does
// not exist, or a directory of the path is a link or another file. It returns
// false for nil.
func IsMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// Walk calls visit for the file rel and, if that is a directory, for each file
// below it, a directory before its entries. info is nil if a file cannot be
// examined; err then is the reason. A directory that cannot be listed is
// visited a second time with the error. If visit returns false, the walk ends
// and Walk returns false.
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
