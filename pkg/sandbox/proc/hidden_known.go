package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

const (
	// seekEntries bounds the directory entries searched for moved secrets.
	seekEntries = 1_000_000
	// mostHeld bounds the descriptors of hidden files in one root.
	mostHeld = 64
	// forgetDays is the number of days after which a missing hidden file is
	// forgotten.
	forgetDays = 30
)

// fileID identifies an existing file. A later file may have the same one.
type fileID struct{ dev, ino int64 }

// known is a file hidden from commands.
type known struct {
	path   string
	linked bool     // hidden because a hidden link led to it, not by its own name or content
	file   *os.File // finds the file after it was moved; nil: not held
	seen   int64    // day when it was last found, since 1970
	absent bool     // a search of the whole root did not find it
}

// object returns the file as the supervisor masks it.
func (k *known) object(id fileID) supervise.Pinned {
	return supervise.Pinned{Path: k.path, Dev: id.dev, Ino: id.ino}
}

// keep returns the hidden files of the root: those found, the targets of
// hidden links, and those that were hidden before and are missing now. A
// missing file may still be at its path, beyond the bounds of the search. Or a
// command has moved a directory above it to a place that is not searched. It
// cannot have been renamed itself, since a hidden file is a mount point for
// commands.
func (s *secretScan) keep(all *scanResult, targets []string, l limits) (objects []supervise.Pinned) {
	now := map[fileID]*known{}
	add := func(path string, info os.FileInfo, linked bool) {
		id, ok := idOf(info)
		if !ok || now[id] != nil {
			return
		}
		k := s.hidden[id]
		if k == nil {
			k = &known{}
		}
		k.path, k.linked, k.seen, k.absent = path, linked, today(), false
		now[id] = k
	}
	for _, path := range targets { // first: later their names alone may not make them secrets
		if info, err := os.Lstat(path); err == nil {
			add(path, info, true)
		}
	}
	for path, info := range all.paths {
		add(path, info, false)
	}
	lost := map[string][]fileID{}
	for id, k := range s.hidden {
		if now[id] != nil {
			continue
		}
		switch path, where := k.find(id); {
		case where == elsewhere:
			lost[filepath.Base(k.path)] = append(lost[filepath.Base(k.path)], id)
		case where == here && supervise.Beneath(s.root, path) && (k.linked || l.secret(path, k.file)):
			k.path, k.seen, k.absent = path, today(), false
			now[id] = k
		default: // deleted, moved out of the root, or no longer secret
			k.release()
		}
	}
	if len(lost) > 0 {
		s.seek(lost, now, all, l)
	}
	s.hidden = now
	held := 0
	for id, k := range now {
		if k.absent {
			continue
		}
		if k.file == nil && held < mostHeld {
			if k.file = all.held[id]; k.file == nil {
				k.file = holdFile(k.path, id)
			}
			delete(all.held, id)
		}
		if k.file != nil {
			held++
		}
		objects = append(objects, k.object(id))
	}
	slices.SortFunc(objects, comparePinned)
	return objects
}

// Results of known.find.
const (
	here = iota
	elsewhere
	nowhere
)

// find returns the path of a file and where it is. With a descriptor it finds
// the file anywhere; without one it only checks the old path.
func (k *known) find(id fileID) (path string, where int) {
	if k.file != nil {
		if path, ok := pathOf(k.file); ok {
			return path, here
		}
		return "", nowhere
	}
	if info, err := os.Lstat(k.path); err == nil {
		if now, ok := idOf(info); ok && now == id {
			return k.path, here
		}
	}
	return "", elsewhere
}

func (k *known) release() {
	closeAll(k.file)
	k.file = nil
}

// releaseHidden closes the descriptors of all hidden files.
func (r *Runner) releaseHidden() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.secretScans {
		s.mu.Lock()
		for _, k := range s.hidden {
			k.release()
		}
		s.mu.Unlock()
	}
}

// secret reports whether a file must be hidden, by its name or its content.
// held is a descriptor of the file, which works even while the file is being
// moved; it may be nil.
func (l limits) secret(path string, held *os.File) bool {
	if l.hide(path) {
		return true
	}
	content := path
	if held != nil {
		content = fmt.Sprintf("/proc/self/fd/%d", held.Fd())
	}
	_, key, _ := beginsAsKey(content)
	return key && !l.lifted(path)
}

// seek searches the whole root for lost files by name and identity. It
// searches once for each file. Files that it does not find stay in now until
// forgetDays have passed, for later servers.
func (s *secretScan) seek(lost map[string][]fileID, now map[fileID]*known, all *scanResult, l limits) {
	walk := false
	for _, ids := range lost {
		walk = walk || slices.ContainsFunc(ids, func(id fileID) bool { return !s.hidden[id].absent })
	}
	if walk {
		s.walkFor(lost, now, all, l)
	}
	for _, ids := range lost {
		for _, id := range ids {
			if k := s.hidden[id]; now[id] == nil && today()-k.seen < forgetDays {
				k.absent = true
				now[id] = k
			}
		}
	}
}

// walkFor reads the whole root up to seekEntries entries, and adds the lost
// files that it finds to now, if they are still secret.
func (s *secretScan) walkFor(lost map[string][]fileID, now map[fileID]*known, all *scanResult, l limits) {
	left := seekEntries
	for queue := []string{s.root}; len(queue) > 0; queue = queue[1:] {
		d, err := os.Open(queue[0])
		if err != nil {
			continue
		}
		entries, _ := d.ReadDir(left + 1)
		d.Close()
		if left -= len(entries); left < 0 {
			all.whole = false
			return
		}
		for _, entry := range entries {
			path := filepath.Join(queue[0], entry.Name())
			if ids := lost[entry.Name()]; len(ids) > 0 {
				if info, err := entry.Info(); err == nil {
					id, ok := idOf(info)
					if k := s.hidden[id]; ok && slices.Contains(ids, id) && (k.linked || l.secret(path, nil)) {
						k.path, k.seen, k.absent = path, today(), false
						now[id] = k
						continue
					}
				}
			}
			if entry.IsDir() && !fileinfo.IsPseudoDir(path) {
				queue = append(queue, path)
			}
		}
	}
}
