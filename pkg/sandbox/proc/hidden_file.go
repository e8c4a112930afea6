package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

const (
	// maxHeldDescriptors bounds the descriptors of hidden files in one root.
	maxHeldDescriptors = 64
	// forgetDays is the number of days after which a missing hidden file is
	// forgotten.
	forgetDays = 30
)

// hiddenFile is a file that is or was hidden from commands.
type hiddenFile struct {
	path        string   // where it was last found
	viaLink     bool     // hidden because a hidden link led to it, not by its own name or content
	descriptor  *os.File // finds the file after it was moved; nil: not open
	links       uint64   // hard links at the last scan; 0: unknown
	lastSeenDay int64    // day when it was last found, in days since 1970
	notFound    bool     // a search of the whole root did not find it
}

// pinned returns the file's entry for Spec.Pinned, with its path and identity,
// by path and identity.
func (k *hiddenFile) pinned(id fileID) supervise.Pinned {
	return supervise.Pinned{Path: k.path, Dev: id.dev, Ino: id.ino}
}

// updateHidden sets s.hidden and returns its files that the root holds. These
// are the files of result, targets (paths that hidden links lead to), and files
// that were hidden before and are missing now. A missing file may still be at
// its path, beyond the bounds of the search. Or a command has moved a directory
// above it to a place that is not searched. It cannot have been renamed itself,
// since a hidden file is a mount point for commands.
func (s *secretScan) updateHidden(result *scanResult, targets []string, rules scanRules) (objects []supervise.Pinned) {
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
		k.path, k.viaLink, k.links, k.lastSeenDay, k.notFound = path, viaLink, linksOf(info), daysSince1970(), false
		hidden[id] = k
	}
	for _, path := range targets { // first: later their names alone may not make them secrets
		if info, err := os.Lstat(path); err == nil {
			add(path, info, true)
		}
	}
	for path, info := range result.hidden {
		add(path, info, false)
	}
	lost := map[string][]fileID{}
	for id, k := range s.hidden {
		if hidden[id] != nil {
			continue
		}
		k.links = 0
		switch path, status := k.locate(id); {
		case status == fileLost:
			lost[filepath.Base(k.path)] = append(lost[filepath.Base(k.path)], id)
		case status == fileFound && supervise.IsBeneath(s.root, path) && (k.viaLink || rules.mustHide(path, k.descriptor)):
			k.path, k.lastSeenDay, k.notFound = path, daysSince1970(), false
			hidden[id] = k
		default: // deleted, moved out of the root, or no longer secret
			k.closeDescriptor()
		}
	}
	if len(lost) > 0 {
		s.searchLost(lost, hidden, result, rules)
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

// locate returns the path of the file, and fileFound, fileLost or fileDeleted. With a
// descriptor it finds the file anywhere; without one it only checks the last path. The
// path is "" unless the file was found.
func (k *hiddenFile) locate(id fileID) (path string, status int) {
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

// closeDescriptor closes the descriptor if it is open.
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
// descriptor is an open descriptor of the file, which works even while the file
// is being moved; nil means that the content at path is read.
func (l scanRules) mustHide(path string, descriptor *os.File) bool {
	if l.isHidden(path) {
		return true
	}
	content := path
	if descriptor != nil {
		content = fmt.Sprintf("/proc/self/fd/%d", descriptor.Fd())
	}
	_, key, _ := beginsAsKey(content)
	return key && !l.isAllowed(path)
}
