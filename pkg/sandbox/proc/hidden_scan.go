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
	maxScanEntries = 50_000 // directory entries
	maxKeyFiles    = 2000   // files whose names suggest a private key
)

// secretScan finds the files in a root that a command must not read or write,
// and caches them. It is updated before each command: a directory is read
// again if its time of change differs.
type secretScan struct {
	mu           sync.Mutex // held by the callers of the methods
	root         string
	dirs         map[string]*dirCache      // by path
	keyChecks    map[string]cachedKeyCheck // by path
	hidden       map[fileID]*hiddenFile    // hidden by the last command or an earlier server
	recordLoaded bool                      // the file in Config.RecordDir was read
	savedRecord  string                    // its text, without the entries of other servers
}

// scanResult holds the findings of one search of a root. All paths are
// absolute.
type scanResult struct {
	hidden      map[string]os.FileInfo // files that must not be read, by path
	descriptors map[fileID]*os.File    // of files in hidden, if secretScan.hidden has none
	links       []string               // links whose names must not be read
	protected   []string               // files that must not be written
	complete    bool                   // no bound was reached
	unstableDir string                 // a directory whose entries moved during every attempt to read it, or ""
}

// scanRules decide which files a search finds.
type scanRules struct {
	isHidden     func(path string) bool   // must not be read, by its name
	isAllowed    func(path string) bool   // may be read, whatever its content
	whyProtected func(path string) string // the reason why it must not be written, or ""
}

// secretScanOf returns the runner's search of a root with its cache, the same at each
// call. The cache is empty until the first search.
func (r *Runner) secretScanOf(root string) *secretScan {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.secretScans[root]
	if s == nil {
		s = &secretScan{root: root, keyChecks: map[string]cachedKeyCheck{}, hidden: map[fileID]*hiddenFile{}}
		r.secretScans[root] = s
	}
	return s
}

// Bounds of the repetitions that find files which move during a search.
const (
	maxReadAgain   = 500 // directories read again because an entry vanished from them
	minRounds      = 3   // of reading directories that changed within recentAge
	maxRounds      = 20  // the same, while they keep changing
	maxRecentReads = 400 // directories read in all of these rounds
	recentAge      = time.Second
	// A change that is older than minChangeGap is not part of a series of
	// changes. Times of change have a resolution of up to 10 ms.
	minChangeGap = 20 * time.Millisecond
)

// scanRoot searches the root breadth first, within the bounds. It follows no link:
// the caller resolves the links of the result. If a directory or a secret
// vanishes between its listing and its use, it was perhaps renamed, so its
// parent is read again. The caller must call scanResult.closeDescriptors.
func (s *secretScan) scanRoot(rules scanRules) scanResult {
	w := &scanPass{secretScan: s, scanRules: rules, oldDirs: s.dirs, stale: map[string]bool{}, entriesLeft: maxScanEntries, result: scanResult{complete: true, hidden: map[string]os.FileInfo{}, descriptors: map[fileID]*os.File{}}}
	s.dirs = make(map[string]*dirCache, len(w.oldDirs))
	w.queue = []string{s.root}
	for rounds := 0; ; {
		w.readQueuedDirs()
		again := w.lookUpHidden()
		if w.result.unstableDir != "" || !w.result.complete {
			break
		}
		if again { // read the directories that files vanished from
			continue
		}
		if rounds++; rounds > maxRounds || !w.queueRecentDirs(rounds <= minRounds) {
			break
		}
	}
	for _, f := range s.dirs {
		w.result.protected = append(w.result.protected, f.protected...)
		w.result.links = append(w.result.links, f.links...)
	}
	slices.Sort(w.result.protected)
	slices.Sort(w.result.links)
	return w.result
}

// scanPass is one pass over the directories of a root, by scanRoot: the directories still
// to read, the caches of the last pass and the limits.
type scanPass struct {
	*secretScan
	scanRules
	oldDirs        map[string]*dirCache // cache of the last scan; also read concurrently, see spec.scannedDirs
	stale          map[string]bool      // directories that must not be taken from oldDirs
	queue          []string             // directories to read
	entriesLeft    int
	readAgainCount int
	recentDirs     []string // directories that changed within recentAge
	recentReads    int      // number of directories read by queueRecentDirs
	result         scanResult
}

// readQueuedDirs reads the directories of the queue and everything below them, unless
// the result becomes incomplete. If one is gone, it reads its parent directory again.
func (w *scanPass) readQueuedDirs() {
	for ; len(w.queue) > 0 && w.result.complete; w.queue = w.queue[1:] {
		if dir := w.queue[0]; w.dirs[dir] == nil && !w.visitDir(dir) && dir != w.root {
			w.readDirAgain(filepath.Dir(dir))
		}
	}
}

// visitDir takes a directory from the cache or reads it, and queues its
// subdirectories. It returns false if dir is gone or not a directory.
func (w *scanPass) visitDir(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return err != nil && !isGone(err)
	}
	f, changed := w.oldDirs[dir], fileinfo.ChangeTime(info)
	id, _ := fileIDOf(info)
	if f == nil || w.stale[dir] || !f.isCurrent(changed) || f.id != id { // two directories may have changed at the same time
		if f, err = readDirCache(w.root, dir, w.entriesLeft, w.scanRules); isGone(err) {
			return false
		}
		f.changed, f.id, f.ownerBarred = changed, id, info.Mode().Perm()&0o500 != 0o500
		if f.readAt.Sub(changed) < recentAge {
			w.recentDirs = append(w.recentDirs, dir)
		}
	}
	if w.entriesLeft -= f.entryCount; w.entriesLeft < 0 {
		w.result.complete = false
		return true
	}
	w.dirs[dir] = f
	w.queue = append(w.queue, f.subdirs...)
	return true
}

// isGone reports whether err means that the path leads to no file: it does not
// exist, or something above it is not a directory.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// readDirAgain reads a directory again, or its nearest parent that exists. After
// maxReadAgain calls it sets result.unstableDir, which ends the scan.
func (w *scanPass) readDirAgain(dir string) {
	if w.readAgainCount++; w.readAgainCount > maxReadAgain {
		w.result.unstableDir = dir
		w.queue = nil
		return
	}
	w.forgetDir(dir)
	if !w.visitDir(dir) && dir != w.root {
		w.readDirAgain(filepath.Dir(dir))
	}
}

// forgetDir removes a directory from the cache, so that visitDir reads it.
func (w *scanPass) forgetDir(dir string) {
	if f := w.dirs[dir]; f != nil {
		w.entriesLeft += f.entryCount
	}
	delete(w.dirs, dir)
	w.stale[dir] = true
}

// lookUpHidden sets result.hidden to the hidden files of the directories that
// were read. It returns true if one of the files has vanished, so that the scan
// must continue.
func (w *scanPass) lookUpHidden() (again bool) {
	earlier := w.result.hidden
	w.result.hidden = map[string]os.FileInfo{}
	keys := make(map[string]cachedKeyCheck, len(w.keyChecks))
	var lost []string
	add := func(path string, info os.FileInfo, err error) {
		switch {
		case err == nil:
			w.result.hidden[path] = info
			w.holdDescriptor(path, info)
		case isGone(err):
			lost = append(lost, filepath.Dir(path))
		}
	}
	for _, f := range w.dirs {
		for _, path := range f.hidden {
			info, err := os.Lstat(path)
			add(path, info, err)
		}
		for _, path := range f.keyCandidates {
			switch info, secret, err := isPrivateKeyFile(path, w.keyChecks, keys); {
			case len(keys) > maxKeyFiles:
				w.result.complete = false
			case err != nil || secret && !w.isAllowed(path):
				add(path, info, err)
			}
		}
	}
	w.secretScan.keyChecks = keys
	w.retainVanished(earlier)
	for _, dir := range lost {
		w.readDirAgain(dir)
	}
	return len(lost) > 0 && w.result.unstableDir == ""
}

// queueRecentDirs queues the directories that changed within recentAge, to read
// them again: a file may have moved from a directory not read yet into one
// already read. Unless always is true, it queues them only if one of them has
// changed since it was read, or so shortly before that its time of change would
// not show the next change. It reports whether it queued any.
func (w *scanPass) queueRecentDirs(always bool) (again bool) {
	if len(w.recentDirs) == 0 {
		return false
	}
	for dir, f := range w.dirs {
		info, err := os.Lstat(dir)
		if err == nil && fileinfo.ChangeTime(info).Equal(f.changed) {
			always = always || f.readAt.Sub(f.changed) < minChangeGap
			continue
		}
		always = true
		if !slices.Contains(w.recentDirs, dir) { // it has changed since it was read
			w.recentDirs = append(w.recentDirs, dir)
		}
	}
	if !always {
		return false
	}
	// A random order keeps other programs from staying one step ahead.
	rand.Shuffle(len(w.recentDirs), func(i, j int) { w.recentDirs[i], w.recentDirs[j] = w.recentDirs[j], w.recentDirs[i] })
	for _, dir := range w.recentDirs[:min(len(w.recentDirs), max(0, maxRecentReads-w.recentReads))] {
		w.recentReads++
		w.forgetDir(dir)
		w.queue = append(w.queue, dir)
		again = true
	}
	w.recentDirs = nil
	return again
}

// tooLargeGap describes the gap for a root that is too large to search
// completely.
func tooLargeGap(root string) string {
	return fmt.Sprintf("secrets and protected files deep inside %s, which has more than %d entries", pathname.Escape(root), maxScanEntries)
}
