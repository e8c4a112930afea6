package supervise

import (
	"strings"

	"golang.org/x/sys/unix"
)

// recordRename records a call that renames the entry from to the entry to, with
// the flags of renameat2(2).
func (r *recorder) recordRename(from, to *dirEntry, flags uint64) {
	switch {
	case !from.exists || to.exists && idOf(&from.file) == idOf(&to.file) || IsBeneath(from.path, to.path):
		return
	case from.root < 0 && to.root < 0:
		return
	case !r.areOnSameMount(from.dir, to.dir): // the call fails
		return
	case flags&unix.RENAME_EXCHANGE != 0:
		r.recordExchange(from, to)
		return
	case to.exists && (flags&unix.RENAME_NOREPLACE != 0 || to.isDir() != from.isDir() || to.isDir() && !r.mayBeEmptyDir(to)):
		return
	case to.root < 0:
		r.recordTree(from)
		return
	case from.root < 0:
		if to.exists && !r.needsNoRecord(to.path) {
			r.recordParentTimes(to)
			r.recordReplaced(to)
			r.marks[to.path] = pathState{fresh: true, gone: idOf(&to.file)}
		} else {
			r.recordCreate(to)
		}
		return
	}
	made, into := r.isCovered(from.path), r.isCovered(to.path)
	holdsOld := made && r.marks[from.path].holdsOld
	r.recordParentTimes(from)
	r.recordParentTimes(to)
	next := pathState{fresh: made, holdsOld: holdsOld}
	if to.exists && !r.needsNoRecord(to.path) {
		r.recordReplaced(to)
		if made {
			next.gone = idOf(&to.file)
		}
	} else if made && !to.exists && !into {
		r.add(&UndoStep{Kind: UndoEntry, Path: to.path})
	}
	if !made || from.isDir() {
		r.add(&UndoStep{Kind: UndoMove, Path: from.path, To: to.path, Before: StateOf(&from.file)})
	}
	if from.isDir() {
		r.renamed = r.newRenamedDir(from, pathState{fresh: made, holdsOld: holdsOld})
		r.forgetBelow(to.path)
		r.renamePaths(from.path, to.path)
	}
	r.marks[to.path] = next
	r.marks[from.path] = pathState{fresh: made && !holdsOld} // the call may fail
	if !made || holdsOld {
		r.markNewParents(to.path)
	}
	r.touched[from.path], r.touched[to.path] = struct{}{}, struct{}{}
}

// renamedDir is what the recorder knew of a directory, and of the paths below it, before a
// call that renames it.
type renamedDir struct {
	path    string
	id      fileID
	marks   map[string]pathState
	touched []string
}

// newRenamedDir returns what the recorder knows of the directory from, whose own mark is
// own.
func (r *recorder) newRenamedDir(from *dirEntry, own pathState) *renamedDir {
	d := &renamedDir{path: from.path, id: idOf(&from.file), marks: map[string]pathState{from.path: own}}
	for path, m := range r.marks {
		if path != from.path && IsBeneath(from.path, path) {
			d.marks[path] = m
		}
	}
	for path := range r.touched {
		if IsBeneath(from.path, path) {
			d.touched = append(d.touched, path)
		}
	}
	return d
}

// settleRename restores what the recorder knew of the last renamed directory, if that is
// still at its old path: the call has failed, or has not happened yet. In both cases the
// marks are right, since a mark says whether a step covers the path.
func (r *recorder) settleRename() {
	d := r.renamed
	if r.renamed = nil; d == nil {
		return
	}
	var file unix.Stat_t
	if unix.Lstat(d.path, &file) != nil || idOf(&file) != d.id {
		return
	}
	for path, m := range d.marks {
		r.marks[path] = m
	}
	for _, path := range d.touched {
		r.touched[path] = struct{}{}
	}
}

// areOnSameMount reports whether two directories, given by descriptor, are on the same
// mount; before Linux 5.8, on the same device. It returns true if that is not known. A
// rename between two mounts fails.
func (r *recorder) areOnSameMount(one, other int) bool {
	var a, b unix.Statx_t
	const mask = unix.STATX_MNT_ID
	if unix.Statx(one, "", unix.AT_EMPTY_PATH, mask, &a) != nil || unix.Statx(other, "", unix.AT_EMPTY_PATH, mask, &b) != nil {
		return true
	}
	if a.Mask&b.Mask&mask != 0 { // since Linux 5.8
		return a.Mnt_id == b.Mnt_id
	}
	return a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor
}

// recordTree records an entry, with everything below it, that is about to leave
// the roots.
func (r *recorder) recordTree(p *dirEntry) {
	if p.root < 0 || r.stopped || r.needsNoRecord(p.path) {
		return
	}
	r.recordParentTimes(p)
	if p.file.Nlink > 1 {
		r.recordWrite(p) // the command can write the file, with its other names, through the new name
	}
	if p.isDir() {
		names, ok := readNames(p, -1)
		if !ok {
			r.add(&UndoStep{Kind: UndoStopped, Path: "the command moved the directory " + p.path + ", which cannot be read, out of the roots"})
			return
		}
		for _, name := range names {
			r.recordChild(p, name)
		}
	}
	r.recordReplaced(p)
	r.marks[p.path] = pathState{fresh: true, gone: idOf(&p.file)}
}

// recordChild calls recordTree for the entry name of the directory p.
func (r *recorder) recordChild(p *dirEntry, name string) {
	fd, err := unix.Openat(p.dir, p.base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	child := &dirEntry{dir: fd, base: name, path: p.path + "/" + name}
	defer child.close()
	child.root = r.rootIndexOf(child.path)
	if child.exists = unix.Fstatat(fd, name, &child.file, unix.AT_SYMLINK_NOFOLLOW) == nil; child.exists {
		r.recordTree(child)
	}
}

// recordExchange records a call that exchanges two entries (RENAME_EXCHANGE).
func (r *recorder) recordExchange(from, to *dirEntry) {
	if !to.exists || IsBeneath(to.path, from.path) {
		return
	}
	if from.root < 0 || to.root < 0 {
		inside := from
		if from.root < 0 {
			inside = to
		}
		r.recordTree(inside)
		return
	}
	if r.isCovered(from.path) && !r.isCovered(to.path) {
		from, to = to, from // undo looks for the file that was there before the command
	}
	fromMade, toMade := r.isCovered(from.path), r.isCovered(to.path)
	fromHolds, toHolds := fromMade && r.marks[from.path].holdsOld, toMade && r.marks[to.path].holdsOld
	r.recordParentTimes(from)
	r.recordParentTimes(to)
	r.add(&UndoStep{Kind: UndoSwap, Path: from.path, To: to.path, Before: StateOf(&from.file)})
	old := append(r.oldBelow(from.path), r.oldBelow(to.path)...)
	const aside = "\x00"
	r.renamePaths(from.path, aside)
	r.renamePaths(to.path, from.path)
	r.renamePaths(aside, to.path)
	r.forgetFreshBelow(from.path)
	r.forgetFreshBelow(to.path)
	for _, path := range old { // the call may fail, and then they are still there
		if _, ok := r.marks[path]; !ok {
			r.marks[path] = pathState{}
		}
	}
	// The call may fail: then isCovered restores the marks.
	r.marks[from.path] = pathState{fresh: toMade, gone: idOf(&from.file), goneMade: fromMade, holdsOld: toHolds}
	r.marks[to.path] = pathState{fresh: fromMade, gone: idOf(&to.file), goneMade: toMade, holdsOld: fromHolds}
	if !toMade || toHolds {
		r.markNewParents(from.path)
	}
	if !fromMade || fromHolds {
		r.markNewParents(to.path)
	}
	r.touched[from.path], r.touched[to.path] = struct{}{}, struct{}{}
}

// oldBelow returns the paths below a path that have marks for files from before the
// command, or for directories that have held one.
func (r *recorder) oldBelow(path string) (old []string) {
	for at, m := range r.marks {
		if at != path && IsBeneath(path, at) && (!m.fresh || m.holdsOld) {
			old = append(old, at)
		}
	}
	return old
}

// forgetBelow removes the marks below a path, which belong to entries that do not
// exist any more.
func (r *recorder) forgetBelow(path string) {
	for at := range r.marks {
		if at != path && IsBeneath(path, at) {
			delete(r.marks, at)
		}
	}
}

// forgetFreshBelow removes the marks of created files below path, so that they
// are right whether or not a call exchanges the directories.
func (r *recorder) forgetFreshBelow(path string) {
	for at, m := range r.marks {
		switch {
		case at == path || !IsBeneath(path, at) || m == pathState{}:
		case m.holdsOld:
			r.marks[at] = pathState{}
		default:
			delete(r.marks, at)
		}
	}
}

// renamePaths renames the recorded paths at and below from as the command renames
// the files.
func (r *recorder) renamePaths(from, to string) {
	renamed := func(path string) (string, bool) {
		rest, ok := strings.CutPrefix(path, from)
		return to + rest, ok && (rest == "" || rest[0] == '/')
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
