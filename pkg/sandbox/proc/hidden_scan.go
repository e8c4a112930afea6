package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// Bounds of the search of a root for files that a command must not read or
// write.
const (
	searchEntries = 50_000
	keyFiles      = 2000     // files whose names suggest a private key
	keyFileBytes  = 64 << 10 // larger files are not read
	keyHead       = 1024
)

// secretScan caches the files in a root that a command must not read or write.
// It is updated before each command: a directory is read again if its time of
// change differs.
type secretScan struct {
	mu      sync.Mutex
	root    string
	folders map[string]*folder
	keys    map[string]keyFile
	hidden  map[fileID]*known // hidden by the last command or an earlier server
	loaded  bool              // the file in Config.RecordDir was read
	saved   string            // its text
}

// scanResult is the result of a search.
type scanResult struct {
	paths    map[string]os.FileInfo // files that must not be read, by path
	held     map[fileID]*os.File    // descriptors of files in paths that the search does not hold yet
	links    []string               // links to files that must not be read
	guard    []string
	whole    bool   // the bounds were not reached
	unstable string // a directory whose entries moved during every attempt to read it
}

// limits holds the rules of a search.
type limits struct {
	hide      func(path string) bool
	lifted    func(path string) bool // shown whatever its content
	protected func(path string) string
}

// secretScan returns the runner's cache for a root.
func (r *Runner) secretScan(root string) *secretScan {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.secretScans[root]
	if s == nil {
		s = &secretScan{root: root, keys: map[string]keyFile{}, hidden: map[fileID]*known{}}
		r.secretScans[root] = s
	}
	return s
}

// Bounds of the repetitions that find files which move during a search.
const (
	mostRelists = 500 // directories read again because an entry vanished from them
	fewRounds   = 3   // of reading directories that changed within hotFor
	mostRounds  = 20  // the same, while they keep changing
	mostHot     = 400 // directories read in all of these
	hotFor      = time.Second
	// A change older than settled is not part of a series. Times of change
	// have a resolution of up to 10 ms.
	settled = 20 * time.Millisecond
)

// update searches the root breadth first, within the bounds. It follows no
// link: the caller resolves those in links. If a directory or a secret
// vanishes between its listing and its use, it was perhaps renamed, so its
// parent is read again.
func (s *secretScan) update(l limits) scanResult {
	w := &scanPass{secretScan: s, limits: l, before: s.folders, stale: map[string]bool{}, left: searchEntries, all: scanResult{whole: true, paths: map[string]os.FileInfo{}, held: map[fileID]*os.File{}}}
	s.folders = make(map[string]*folder, len(w.before))
	w.queue = []string{s.root}
	for rounds := 0; ; {
		w.drain()
		again := w.identify()
		if w.all.unstable != "" || !w.all.whole {
			break
		}
		if again { // read the directories that files vanished from
			continue
		}
		if rounds++; rounds > mostRounds || !w.readHot(rounds <= fewRounds) {
			break
		}
	}
	for _, f := range s.folders {
		w.all.guard = append(w.all.guard, f.guarded...)
		w.all.links = append(w.all.links, f.links...)
	}
	slices.Sort(w.all.guard)
	slices.Sort(w.all.links)
	return w.all
}

// scanPass is the state of one update of a search.
type scanPass struct {
	*secretScan
	limits
	before  map[string]*folder // also read concurrently, see spec.folders
	stale   map[string]bool    // entries of before that must not be used
	queue   []string
	left    int // remaining entries
	relists int
	hot     []string // directories that changed within hotFor
	rereads int
	all     scanResult
}

// drain reads the directories of the queue and everything below them.
func (w *scanPass) drain() {
	for ; len(w.queue) > 0 && w.all.whole; w.queue = w.queue[1:] {
		if dir := w.queue[0]; w.folders[dir] == nil && !w.visit(dir) && dir != w.root {
			w.relist(filepath.Dir(dir))
		}
	}
}

// visit returns false if dir is gone or not a directory. It reads the directory
// unless the cache is current.
func (w *scanPass) visit(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return err != nil && !gone(err)
	}
	f, changed := w.before[dir], fileinfo.ChangeTime(info)
	if f == nil || w.stale[dir] || !f.current(changed) {
		if f, err = readFolder(dir, w.left, w.limits); gone(err) {
			return false
		}
		f.changed, f.closed = changed, info.Mode().Perm()&0o500 != 0o500
		if f.read.Sub(changed) < hotFor {
			w.hot = append(w.hot, dir)
		}
	}
	if w.left -= f.entries; w.left < 0 {
		w.all.whole = false
		return true
	}
	w.folders[dir] = f
	w.queue = append(w.queue, f.below...)
	return true
}

// gone reports whether err means that no file is at the path.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// relist reads a directory again, or its nearest existing parent.
func (w *scanPass) relist(dir string) {
	if w.relists++; w.relists > mostRelists {
		w.all.unstable = dir
		w.queue = nil
		return
	}
	w.forget(dir)
	if !w.visit(dir) && dir != w.root {
		w.relist(filepath.Dir(dir))
	}
}

// forget removes a directory from the cache, so that visit reads it.
func (w *scanPass) forget(dir string) {
	if f := w.folders[dir]; f != nil {
		w.left += f.entries
	}
	delete(w.folders, dir)
	w.stale[dir] = true
}

// identify looks up the files that must not be read. It returns true if one
// has vanished, so that the search must continue.
func (w *scanPass) identify() (again bool) {
	earlier := w.all.paths
	w.all.paths = map[string]os.FileInfo{}
	keys := make(map[string]keyFile, len(w.keys))
	var lost []string
	add := func(path string, info os.FileInfo, err error) {
		switch {
		case err == nil:
			w.all.paths[path] = info
			w.hold(path, info)
		case gone(err):
			lost = append(lost, filepath.Dir(path))
		}
	}
	for _, f := range w.folders {
		for _, path := range f.hidden {
			info, err := os.Lstat(path)
			add(path, info, err)
		}
		for _, path := range f.keys {
			switch info, isKey, err := w.holdsKey(path, keys); {
			case len(keys) > keyFiles:
				w.all.whole = false
			case err != nil || isKey && !w.lifted(path):
				add(path, info, err)
			}
		}
	}
	w.secretScan.keys = keys
	w.retain(earlier)
	for _, dir := range lost {
		w.relist(dir)
	}
	return len(lost) > 0 && w.all.unstable == ""
}

// readHot queues the directories that changed within hotFor, to read them
// again: a file may have moved from a directory not read yet into one already
// read. Unless always is true, it queues them only if one has changed since it
// was read, or so shortly before that its time of change would not show the
// next change. It reports whether it queued any.
func (w *scanPass) readHot(always bool) (again bool) {
	if len(w.hot) == 0 {
		return false
	}
	for dir, f := range w.folders {
		info, err := os.Lstat(dir)
		if err == nil && fileinfo.ChangeTime(info).Equal(f.changed) {
			always = always || f.read.Sub(f.changed) < settled
			continue
		}
		always = true
		if !slices.Contains(w.hot, dir) { // it has changed since it was read
			w.hot = append(w.hot, dir)
		}
	}
	if !always {
		return false
	}
	// A random order keeps other programs from staying one step ahead.
	rand.Shuffle(len(w.hot), func(i, j int) { w.hot[i], w.hot[j] = w.hot[j], w.hot[i] })
	for _, dir := range w.hot[:min(len(w.hot), max(0, mostHot-w.rereads))] {
		w.rereads++
		w.forget(dir)
		w.queue = append(w.queue, dir)
		again = true
	}
	w.hot = nil
	return again
}

// unsearched describes the gap for a root that is too large to search.
func unsearched(root string) string {
	return fmt.Sprintf("secrets and protected files deep inside %s, which has more than %d entries", pathname.Escape(root), searchEntries)
}
