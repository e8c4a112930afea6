package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// recorder writes the undo record of a command. It sees each call before the
// kernel makes it, and does not learn whether the call succeeds: to undo the
// record of a failed call changes nothing.
type recorder struct {
	spec        *Spec
	recordsDir  int   // the directory of all records
	serverRoots []int // descriptors of the roots as the server sees them, in the order of roots
	roots       []string
	began       time.Time

	mu        sync.Mutex
	buf       [unix.PathMax]byte
	dir       int   // directory of this record; -1 until the first change
	log       int   // descriptor of the log; -1 until the first change
	data      int   // descriptor of the copied contents; -1 until the first change
	stepCount int   // steps so far
	keptBytes int64 // bytes of kept content
	dataEnd   int64 // end of data
	linkCount int   // hard links so far, including failed ones; numbers their names
	stopped   bool  // nothing more is recorded, after an error, at a limit or at the end

	// marks record, by path, whether the command made the file or directory
	// with everything below it. The nearest mark at or above a path applies.
	// Where that is uncertain, for example since a call may have failed, the mark
	// says no: then more is recorded than necessary.
	marks      map[string]pathState
	touched    map[string]struct{}
	savedParts map[fileID]savedPart
	renamed    *renamedDir         // the last renaming, unless its result was looked at
	links      map[fileID][]string // the hard links in the record
}

// pathState describes a path. fresh means that the path has a record which covers
// all later changes there. gone is the file that the command removed, or moved away,
// there: if that file is still there, the call failed. goneMade means that the command
// had made that file.
//
// holdsOld means that a directory made by the command has held, at any depth, a
// file from before the command. Undo then needs the directory to move the file
// back, so its removal, replacement and mode are recorded although it is fresh.
type pathState struct {
	fresh    bool
	gone     fileID
	goneMade bool
	holdsOld bool
}

// savedPart says which part of a file's state the record already has.
type savedPart int

const (
	// savedMeta is mode, owner and times only, savedContent also the content.
	savedMeta savedPart = iota + 1
	savedContent
)

// newRecorder returns nil for a command without a record.
func newRecorder(s *Spec) *recorder {
	if s.Undo == "" || len(s.undoFiles) == 0 || len(s.Layers) > 0 {
		return nil
	}
	r := &recorder{
		spec: s, recordsDir: int(s.undoFiles[0]), began: time.Now(), dir: -1, log: -1, data: -1,
		marks: map[string]pathState{}, touched: map[string]struct{}{}, savedParts: map[fileID]savedPart{}, links: map[fileID][]string{},
	}
	for _, root := range s.Roots {
		if !root.ReadOnly && len(r.serverRoots) < len(s.undoFiles)-1 {
			r.serverRoots = append(r.serverRoots, int(s.undoFiles[1+len(r.serverRoots)]))
			r.roots = append(r.roots, root.Path)
		}
	}
	return r
}

// rootIndexOf returns the index of the root that contains path, -1 if path is not
// recorded: outside the roots, or in the temporary or another writable directory.
func (r *recorder) rootIndexOf(path string) int {
	for i, root := range r.roots {
		if IsBeneath(root, path) {
			if IsBeneath(r.spec.Temp, path) || slices.ContainsFunc(r.spec.Writable, func(dir string) bool { return IsBeneath(dir, path) }) {
				return -1
			}
			return i
		}
	}
	return -1
}

// unfinishedLogName is the name of a log until it is locked and has its head.
const unfinishedLogName = "log.new"

// openRecord makes the directory of the record, unless it is made. The log gets its
// final name only after it is locked and has its head. After an error it sets r.stop
// and returns false.
func (r *recorder) openRecord() bool {
	if r.dir >= 0 {
		return true
	}
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC | unix.O_NOFOLLOW
	err := unix.Mkdirat(r.recordsDir, r.spec.Undo, 0o700)
	if err == nil {
		r.dir, err = unix.Openat(r.recordsDir, r.spec.Undo, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		r.log, err = unix.Openat(r.dir, unfinishedLogName, flags|unix.O_APPEND, 0o600)
	}
	if err == nil {
		err = unix.Flock(r.log, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		r.data, err = unix.Openat(r.dir, "data", flags, 0o600)
	}
	if err != nil {
		r.stopped = true
		return false
	}
	command := ""
	if len(r.spec.Argv) > 0 {
		command = r.spec.Argv[len(r.spec.Argv)-1]
	}
	r.writeStep(&UndoStep{Kind: UndoHead, Path: command[:min(len(command), 300)], Roots: r.roots, Time: r.began.UnixNano()})
	if err := unix.Renameat(r.dir, unfinishedLogName, r.dir, "log"); err != nil {
		r.stopped = true
	}
	return !r.stopped
}

// writeStep appends the encoded step to the log. After an error, for example
// without space, the record ends there.
func (r *recorder) writeStep(step *UndoStep) {
	text := AppendMessage(nil, step)
	if n, err := unix.Write(r.log, text); err != nil || n < len(text) {
		r.stopped = true
	}
}

// add writes step to the log, which it creates at the first call. After the
// largest number of steps it writes an UndoStopped instead.
func (r *recorder) add(step *UndoStep) {
	if r.stopped || !r.openRecord() {
		return
	}
	if r.stepCount++; r.stepCount > maxUndoSteps {
		step = &UndoStep{Kind: UndoStopped, Path: "the command changed more than " + strconv.Itoa(maxUndoSteps) + " files"}
	}
	r.writeStep(step)
	before := &step.Before
	switch {
	case step.Kind == UndoStopped:
		r.addToUnheldList(step)
		r.stopped = true
	case step.Kind != UndoEntry && step.Kind != UndoContent:
	case before.Mode&unix.S_IFMT == unix.S_IFREG && !before.Held && before.Link == "":
		r.addToUnheldList(step)
	}
}

// addToUnheldList appends a step to the list of those that undo cannot revert. After an
// error, the answer of the command does not name the file, and only undo does.
func (r *recorder) addToUnheldList(step *UndoStep) {
	fd, err := unix.Openat(r.dir, UndoUnheld, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	unix.Write(fd, AppendMessage(nil, step))
	unix.Close(fd)
}

// finish records the state after the command, which completes the record.
func (r *recorder) finish() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir < 0 {
		return
	}
	r.settleRename()
	paths := make([]string, 0, len(r.touched))
	for path := range r.touched {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var text []byte
	ended, madeDirs := time.Now(), false
	left := int64(maxUndoHashBytes)
	for _, path := range paths {
		var file unix.Stat_t
		var state UndoState
		err := unix.Fstatat(unix.AT_FDCWD, path, &file, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EACCES { // the command has closed the directory
			continue
		}
		if err == nil {
			state = StateOf(&file)
			state.Target = readLinkTarget(unix.AT_FDCWD, path, &file)
			state.Held = r.isCovered(path)
			madeDirs = madeDirs || state.Held && file.Mode&unix.S_IFMT == unix.S_IFDIR
			if state.Target == "" {
				state.Attributes = attributesOf(path)
			}
			if file.Mode&unix.S_IFMT == unix.S_IFREG && state.Size <= min(UndoFileBytes, left) {
				left -= state.Size
				state.Hash = hashFile(path)
			}
		}
		text = AppendMessage(text, &UndoStep{Kind: UndoStamp, Path: path, Before: state})
	}
	if madeDirs {
		waitForFileTime(ended)
	}
	text = AppendMessage(text, &UndoStep{Kind: UndoEnd, Time: ended.UnixNano(), Before: UndoState{Held: true}})
	for len(text) > 0 {
		n, err := unix.Write(r.log, text)
		if err != nil {
			break
		}
		text = text[n:]
	}
	unix.Close(r.log)
	unix.Close(r.data)
	unix.Close(r.dir)
	r.dir, r.stopped = -1, true
}

// waitForFileTime waits until files that are created get a later time than at: the clock
// of file times advances in steps of up to 10 ms. By this time undo finds files that
// others create in a directory that the command has made.
func waitForFileTime(at time.Time) {
	for range 50 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil || now.Nano() > at.UnixNano() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// StateOf returns the state of a file without its content.
func StateOf(file *unix.Stat_t) UndoState {
	return UndoState{
		Mode: int64(file.Mode), Dev: int64(file.Dev), Ino: int64(file.Ino), UID: int64(file.Uid), GID: int64(file.Gid), Size: file.Size,
		Accessed: unix.TimespecToNsec(file.Atim), Modified: unix.TimespecToNsec(file.Mtim), Changed: unix.TimespecToNsec(file.Ctim), Number: int64(file.Rdev),
	}
}

// readLinkTarget returns the target of the entry name of dir if file, its stat, is
// a link; "" for other files and on an error.
func readLinkTarget(dir int, name string, file *unix.Stat_t) string {
	if file.Mode&unix.S_IFMT != unix.S_IFLNK {
		return ""
	}
	target := make([]byte, unix.PathMax)
	n, _ := unix.Readlinkat(dir, name, target)
	return string(target[:max(n, 0)])
}

// isCovered reports whether the command made the file at path or a directory
// above it, so that its record covers path.
func (r *recorder) isCovered(path string) bool {
	for at := path; len(at) > 1; at = filepath.Dir(at) {
		m, ok := r.marks[at]
		if !ok {
			continue
		}
		if m.gone != (fileID{}) {
			var file unix.Stat_t
			if unix.Lstat(at, &file) == nil && idOf(&file) == m.gone {
				r.marks[at] = pathState{fresh: m.goneMade, holdsOld: m.goneMade} // it may hold old files
				return m.goneMade
			}
		}
		return m.fresh
	}
	return false
}

// needsNoRecord reports whether the removal of an entry need not be recorded:
// the command made the entry, and it has held nothing from before the command.
func (r *recorder) needsNoRecord(path string) bool {
	return r.isCovered(path) && !r.marks[path].holdsOld
}

// markPreexisting marks a path that a file or directory from before the command gets, by a
// rename or a hard link.
func (r *recorder) markPreexisting(path string) {
	r.marks[path] = pathState{}
	r.markNewParents(path)
}

// markNewParents marks the directories above path that the command made.
func (r *recorder) markNewParents(path string) {
	for dir := filepath.Dir(path); r.rootIndexOf(dir) >= 0; dir = filepath.Dir(dir) {
		if r.isCovered(dir) {
			r.marks[dir] = pathState{fresh: true, gone: r.marks[dir].gone, goneMade: r.marks[dir].goneMade, holdsOld: true}
		}
	}
}

// idOf returns device and inode of a file.
func idOf(file *unix.Stat_t) fileID { return fileID{uint64(file.Dev), file.Ino} }

// recordParentTimes records the times of the directory that contains p, which
// every change of its entries alters.
func (r *recorder) recordParentTimes(p *dirEntry) {
	var file unix.Stat_t
	if unix.Fstat(p.dir, &file) != nil || r.savedParts[idOf(&file)] != 0 {
		return
	}
	dir := filepath.Dir(p.path)
	if r.rootIndexOf(dir) < 0 || r.isCovered(dir) {
		return
	}
	r.savedParts[idOf(&file)] = savedMeta
	r.add(&UndoStep{Kind: UndoMeta, Path: dir, Before: StateOf(&file)})
	r.touched[dir] = struct{}{} // undo restores its mode, too
}

// recordCreate records a call that makes the entry p, which undo removes.
func (r *recorder) recordCreate(p *dirEntry) {
	if p.exists || r.isCovered(p.path) {
		return
	}
	r.recordParentTimes(p)
	r.add(&UndoStep{Kind: UndoEntry, Path: p.path})
	r.marks[p.path] = pathState{fresh: true}
	r.touched[p.path] = struct{}{}
}

// recordLink records a call that creates the entry to as a hard link of the
// file at from. from is nil if the file has no path.
func (r *recorder) recordLink(from, to *dirEntry) {
	if to.exists || from != nil && !from.exists && from.removed == (fileID{}) {
		return
	}
	made := from != nil && from.root >= 0 && r.isCovered(from.path)
	if to.root < 0 {
		if from != nil && from.root >= 0 && !made {
			r.recordWrite(from) // the command can write the file through the new name
		}
		return
	}
	if !r.isCovered(to.path) {
		r.recordParentTimes(to)
		r.add(&UndoStep{Kind: UndoEntry, Path: to.path})
	}
	if !made {
		r.markPreexisting(to.path)
	}
	r.touched[to.path] = struct{}{}
}

// recordRemove records a call that removes the entry p. rmdir means that the
// call removes only directories, and otherwise none. A call that must fail, for
// the kind of the entry or for a directory that is not empty, is not recorded.
func (r *recorder) recordRemove(p *dirEntry, rmdir bool) {
	if !p.exists || rmdir != p.isDir() || rmdir && !r.mayBeEmptyDir(p) || r.needsNoRecord(p.path) {
		return
	}
	r.recordParentTimes(p)
	r.recordReplaced(p)
	r.marks[p.path] = pathState{fresh: true, gone: idOf(&p.file)}
}

// recordReplaced records the state and content of p, an entry that is about to
// be removed or replaced.
func (r *recorder) recordReplaced(p *dirEntry) {
	r.add(&UndoStep{Kind: UndoEntry, Path: p.path, Before: r.keepContent(p, true)})
	r.touched[p.path] = struct{}{}
	if p.isDir() || p.file.Nlink == 1 {
		delete(r.savedParts, idOf(&p.file)) // a new file may get the inode
	}
}

// recordWrite records a call that opens p, an existing file, for writing: the
// record keeps its content.
func (r *recorder) recordWrite(p *dirEntry) {
	if !p.exists || p.file.Mode&unix.S_IFMT != unix.S_IFREG || r.savedParts[idOf(&p.file)] == savedContent {
		return
	}
	if r.isCovered(p.path) {
		r.separateLinks(idOf(&p.file))
		return
	}
	r.savedParts[idOf(&p.file)] = savedContent
	before := r.keepContent(p, false)
	if !before.Held {
		r.separateLinks(idOf(&p.file))
	}
	r.add(&UndoStep{Kind: UndoContent, Path: p.path, Before: before})
	r.touched[p.path] = struct{}{}
}

// recordWriteOutside records a call that opens a file for writing that has no path
// in the roots, or none at all. It may have had one.
func (r *recorder) recordWriteOutside(p *dirEntry) {
	id := p.removed
	if p.exists {
		id = idOf(&p.file)
	}
	if r.savedParts[id] != savedContent {
		r.separateLinks(id)
	}
}

// recordMetadataChange records a call that changes mode, owner or times of p.
func (r *recorder) recordMetadataChange(p *dirEntry) {
	if !p.exists || r.savedParts[idOf(&p.file)] != 0 || r.needsNoRecord(p.path) {
		return
	}
	r.savedParts[idOf(&p.file)] = savedMeta
	r.add(&UndoStep{Kind: UndoMeta, Path: p.path, Before: StateOf(&p.file)})
	r.touched[p.path] = struct{}{}
}

// mayBeEmptyDir reports whether a directory has no entries. It returns true for a
// directory that cannot be read, too.
func (r *recorder) mayBeEmptyDir(p *dirEntry) bool {
	names, _ := readNames(p, 1)
	return len(names) == 0
}

// readNames returns at most limit names in a directory, all with -1. ok is false
// if the directory cannot be opened.
func readNames(p *dirEntry, limit int) (names []string, ok bool) {
	fd, err := unix.Openat(p.dir, p.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), p.base)
	defer f.Close()
	names, _ = f.Readdirnames(limit)
	return names, true
}
