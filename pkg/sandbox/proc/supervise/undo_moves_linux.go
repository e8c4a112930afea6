package supervise

import (
	"strings"

	"golang.org/x/sys/unix"
)

// renames records a call that renames from to to.
func (r *recorder) renames(from, to *place, flags uint64) {
	switch {
	case !from.exists || to.exists && idOf(&from.file) == idOf(&to.file) || Beneath(from.path, to.path):
		return
	case from.root < 0 && to.root < 0:
		return
	case flags&unix.RENAME_EXCHANGE != 0:
		r.exchanges(from, to)
		return
	case to.exists && (flags&unix.RENAME_NOREPLACE != 0 || to.isDir() != from.isDir() || to.isDir() && !r.empty(to)):
		return
	case to.root < 0: // it leaves the roots
		if from.isDir() && !r.covered(from.path) {
			r.add(&UndoRecord{Kind: UndoStopped, Path: "the command moved the directory " + from.path + " out of the roots"})
			r.stop = true
		} else if !r.covered(from.path) {
			r.above(from)
			r.replaced(from)
			r.marks[from.path] = mark{fresh: true, gone: idOf(&from.file)}
		}
		return
	case from.root < 0: // it enters a root
		if to.exists && !r.covered(to.path) {
			r.above(to)
			r.replaced(to)
			r.marks[to.path] = mark{fresh: true, gone: idOf(&to.file)}
		} else {
			r.creates(to)
		}
		return
	}
	made, into := r.covered(from.path), r.covered(to.path)
	r.above(from)
	r.above(to)
	next := mark{fresh: made}
	if to.exists && !into {
		r.replaced(to)
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
		r.rekey(from.path, to.path, from.isDir())
	}
	r.marks[to.path] = next
	if made {
		r.marks[from.path] = mark{fresh: true}
	}
	r.touched[from.path], r.touched[to.path] = struct{}{}, struct{}{}
}

// exchanges records a call that exchanges two entries.
func (r *recorder) exchanges(from, to *place) {
	if !to.exists || from.root < 0 || to.root < 0 || Beneath(to.path, from.path) {
		return
	}
	fromMade, toMade := r.covered(from.path), r.covered(to.path)
	r.above(from)
	r.above(to)
	r.add(&UndoRecord{Kind: UndoSwap, Path: from.path, To: to.path, Before: StateOf(&from.file)})
	const aside = "\x00"
	r.rekey(from.path, aside, true)
	r.rekey(to.path, from.path, true)
	r.rekey(aside, to.path, true)
	r.marks[from.path], r.marks[to.path] = mark{fresh: toMade}, mark{fresh: fromMade}
	r.touched[from.path], r.touched[to.path] = struct{}{}, struct{}{}
}

// rekey renames the recorded paths as the command renames the files. With tree
// it includes the paths below from.
func (r *recorder) rekey(from, to string, tree bool) {
	renamed := func(path string) (string, bool) {
		rest, ok := strings.CutPrefix(path, from)
		return to + rest, ok && (rest == "" || tree && rest[0] == '/')
	}
	marks, touched := map[string]mark{}, []string{}
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
