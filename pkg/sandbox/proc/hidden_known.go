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
	// maxLostSearchEntries bounds the directory entries searched for moved secrets.
	maxLostSearchEntries = 1_000_000
	// maxHeldDescriptors bounds the descriptors of hidden files in one root.
	maxHeldDescriptors = 64
	// forgetDays is the number of days after which a missing hidden file is
	// forgotten.
	forgetDays = 30
)

// fileID holds device and inode of a file. After the file is deleted, a later
// file may have the same.
type fileID struct{ dev, ino int64 }

// hiddenFile is a file that is or was hidden from commands.
type hiddenFile struct {
	path        string   // where it was last found
	viaLink     bool     // hidden because a hidden link led to it, not by its own name or content
	descriptor  *os.File // finds the file after it was moved; nil: not open
	lastSeenDay int64    // day when it was last found, in days since 1970
	notFound    bool     // a search of the whole root did not find it
}

// pinned returns the file as the supervisor masks it, by path and identity.
func (k *hiddenFile) pinned(id fileID) supervise.Pinned {
	return supervise.Pinned{Path: k.path, Dev: id.dev, Ino: id.ino}
}

// updateHidden sets s.hidden and returns its files that the root holds. These
// are the files of result, targets (paths that hidden links lead to), and files
// that were hidden before and are missing now. A missing file may still be at
// its path, beyond the bounds of the search. Or a command has moved a directory
// above it to a place that is not searched. It cannot have been renamed itself,
// since a hidden file is a mount point for commands.
func (s *secretScan) updateHidden(result *scanResult, targets []string, l scanRules) (objects []supervise.Pinned) {
	hidden := map[fileID]*hiddenFile{}
	add := func(path string, info os.FileInfo, viaLink bool) {
		id, ok := fileIDOf(info)
		if !ok || hidden[id] != nil {
			return
		}
		k := s.hidden[id]
		if k == nil {
			k = &hiddenFile{}
		}
		k.path, k.viaLink, k.lastSeenDay, k.notFound = path, viaLink, daysSince1970(), false
		hidden[id] = k
	}
	for _, path := range targets { // first: later their names alone may not make them secrets
		if info, err := os.Lstat(path); err == nil {
			add(path, info, true)
		}
	}
	for path, info := range result.paths {
		add(path, info, false)
	}
	lost := map[string][]fileID{}
	for id, k := range s.hidden {
		if hidden[id] != nil {
			continue
		}
		switch path, where := k.locate(id); {
		case where == fileLost:
			lost[filepath.Base(k.path)] = append(lost[filepath.Base(k.path)], id)
		case where == fileFound && supervise.Beneath(s.root, path) && (k.viaLink || l.mustHide(path, k.descriptor)):
			k.path, k.lastSeenDay, k.notFound = path, daysSince1970(), false
			hidden[id] = k
		default: // deleted, moved out of the root, or no longer secret
			k.closeDescriptor()
		}
	}
	if len(lost) > 0 {
		s.searchLost(lost, hidden, result, l)
	}
	s.hidden = hidden
	held := 0
	for id, k := range hidden {
		if k.notFound {
			continue
		}
		if k.descriptor == nil && held < maxHeldDescriptors {
			if k.descriptor = result.descriptors[id]; k.descriptor == nil {
				k.descriptor = openIdentified(k.path, id)
			}
			delete(result.descriptors, id)
		}
		if k.descriptor != nil {
			held++
		}
		objects = append(objects, k.pinned(id))
	}
	slices.SortFunc(objects, comparePinned)
	return objects
}

// Results of hiddenFile.locate.
const (
	fileFound   = iota // it is at the returned path
	fileLost           // it is not at its last path, and may be anywhere
	fileDeleted        // it has no name any more
)

// locate returns the path of the file, and fileFound, fileLost or fileDeleted.
// With a descriptor it finds the file anywhere; without one it only checks the
// last path.
func (k *hiddenFile) locate(id fileID) (path string, where int) {
	if k.descriptor != nil {
		if path, ok := currentPath(k.descriptor); ok {
			return path, fileFound
		}
		return "", fileDeleted
	}
	if info, err := os.Lstat(k.path); err == nil {
		if now, ok := fileIDOf(info); ok && now == id {
			return k.path, fileFound
		}
	}
	return "", fileLost
}

// closeDescriptor closes the descriptor if there is one.
func (k *hiddenFile) closeDescriptor() {
	closeAll(k.descriptor)
	k.descriptor = nil
}

// closeHiddenDescriptors closes the descriptors of all hidden files in all
// roots.
func (r *Runner) closeHiddenDescriptors() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.secretScans {
		s.mu.Lock()
		for _, k := range s.hidden {
			k.closeDescriptor()
		}
		s.mu.Unlock()
	}
}

// mustHide reports whether a file must be hidden, by its name or its content.
// held is a descriptor of the file, which works even while the file is being
// moved; nil means that the content at path is read.
func (l scanRules) mustHide(path string, held *os.File) bool {
	if l.isHidden(path) {
		return true
	}
	content := path
	if held != nil {
		content = fmt.Sprintf("/proc/self/fd/%d", held.Fd())
	}
	_, key, _ := beginsAsKey(content)
	return key && !l.isAllowed(path)
}

// searchLost searches the whole root for lost files, which are given by base
// name, and adds those that it finds to hidden. It searches once for each file.
// A file that it does not find is added as notFound until forgetDays have
// passed, for later servers.
func (s *secretScan) searchLost(lost map[string][]fileID, hidden map[fileID]*hiddenFile, result *scanResult, l scanRules) {
	walk := false
	for _, ids := range lost {
		walk = walk || slices.ContainsFunc(ids, func(id fileID) bool { return !s.hidden[id].notFound })
	}
	if walk {
		s.walkForLost(lost, hidden, result, l)
	}
	for _, ids := range lost {
		for _, id := range ids {
			if k := s.hidden[id]; hidden[id] == nil && daysSince1970()-k.lastSeenDay < forgetDays {
				k.notFound = true
				hidden[id] = k
			}
		}
	}
}

// walkForLost reads up to maxLostSearchEntries entries of the root, and adds
// the lost files that it finds to hidden if they are still secret. If the root
// has more entries, it sets result.complete to false.
func (s *secretScan) walkForLost(lost map[string][]fileID, hidden map[fileID]*hiddenFile, result *scanResult, l scanRules) {
	left := maxLostSearchEntries
	for queue := []string{s.root}; len(queue) > 0; queue = queue[1:] {
		d, err := os.Open(queue[0])
		if err != nil {
			continue
		}
		entries, _ := d.ReadDir(left + 1)
		d.Close()
		if left -= len(entries); left < 0 {
			result.complete = false
			return
		}
		for _, entry := range entries {
			path := filepath.Join(queue[0], entry.Name())
			if ids := lost[entry.Name()]; len(ids) > 0 {
				if info, err := entry.Info(); err == nil {
					id, ok := fileIDOf(info)
					if k := s.hidden[id]; ok && slices.Contains(ids, id) && (k.viaLink || l.mustHide(path, nil)) {
						k.path, k.lastSeenDay, k.notFound = path, daysSince1970(), false
						hidden[id] = k
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
