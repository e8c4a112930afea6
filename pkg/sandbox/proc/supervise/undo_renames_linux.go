package supervise

import (
	"strings"

	"golang.org/x/sys/unix"
)

// recordRename records a call that renames from to to.
func (r *recorder) recordRename(from, to *dirEntry, flags uint64) {
	switch {
	case !from.exists || to.exists && idOf(&from.file) == idOf(&to.file) || IsBeneath(from.path, to.path):
		return
	case from.root < 0 && to.root < 0:
		return
	case flags&unix.RENAME_EXCHANGE != 0:
		r.recordExchange(from, to)
		return
	case to.exists && (flags&unix.RENAME_NOREPLACE != 0 || to.isDir() != from.isDir() || to.isDir() && !r.isEmptyDir(to)):
		return
	case to.root < 0: // it leaves the roots
		if from.isDir() && !r.isCovered(from.path) {
			r.add(&UndoRecord{Kind: UndoStopped, Path: "the command moved the directory " + from.path + " out of the roots"})
			r.stop = true
		} else if !r.isCovered(from.path) {
			r.recordParentTimes(from)
			r.recordReplaced(from)
			r.marks[from.path] = pathState{fresh: true, gone: idOf(&from.file)}
		}
		return
	case from.root < 0: // it enters a root
		if to.exists && !r.isCovered(to.path) {
			r.recordParentTimes(to)
			r.recordReplaced(to)
			r.marks[to.path] = pathState{fresh: true, gone: idOf(&to.file)}
		} else {
			r.recordCreate(to)
		}
		return
	}
	made, into := r.isCovered(from.path), r.isCovered(to.path)
	r.recordParentTimes(from)
	r.recordParentTimes(to)
	next := pathState{fresh: made}
	if to.exists && !into {
		r.recordReplaced(to)
		if made {
			next.gone = idOf(&to.file)
		}
	}
	if made && !from.isDir() {
		if !to.exists && !into {
			r.add(&UndoRecord{Kind: UndoEntry, Path: to.path})
		}
	} else {
		r.add(&UndoRecord{Kind: UndoMove, Path: from.path, To: to.path, Before: StateOf(&from.file)})
		r.renamePaths(from.path, to.path, from.isDir())
	}
	r.marks[to.path] = next
	if made {
		r.marks[from.path] = pathState{fresh: true}
	}
	r.touched[from.path], r.touched[to.path] = struct{}{}, struct{}{}
}

// recordExchange records a call that exchanges two entries.
func (r *recorder) recordExchange(from, to *dirEntry) {
	if !to.exists || from.root < 0 || to.root < 0 || IsBeneath(to.path, from.path) {
		return
	}
	fromMade, toMade := r.isCovered(from.path), r.isCovered(to.path)
	r.recordParentTimes(from)
	r.recordParentTimes(to)
	r.add(&UndoRecord{Kind: UndoSwap, Path: from.path, To: to.path, Before: StateOf(&from.file)})
	const aside = "\x00"
	r.renamePaths(from.path, aside, true)
	r.renamePaths(to.path, from.path, true)
	r.renamePaths(aside, to.path, true)
	r.marks[from.path], r.marks[to.path] = pathState{fresh: toMade}, pathState{fresh: fromMade}
	r.touched[from.path], r.touched[to.path] = struct{}{}, struct{}{}
}

// renamePaths renames the recorded paths as the command renames the files. With tree
// it includes the paths below from.
func (r *recorder) renamePaths(from, to string, tree bool) {
	renamed := func(path string) (string, bool) {
		rest, ok := strings.CutPrefix(path, from)
		return to + rest, ok && (rest == "" || tree && rest[0] == '/')
	}
	marks, touched := map[string]pathState{}, []string{}
	for path, m := range r.marks {
		if next, ok := renamed(path); ok {
			delete(r.marks, path)
			marks[next] = m
		}
	}
	for path := range r.touched {
		if next, ok := renamed(path); ok {
			touched = append(touched, next)
			delete(r.touched, path)
		}
	}
	for path, m := range marks {
		r.marks[path] = m
	}
	for _, path := range touched {
		r.touched[path] = struct{}{}
	}
}
