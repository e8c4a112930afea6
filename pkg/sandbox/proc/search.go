package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// How much of a root is looked at for what a command must not read or write.
const (
	searchEntries = 50_000
	keyFiles      = 2000     // that may hold a private key by their names
	keyFileBytes  = 64 << 10 // none is larger
	keyHead       = 1024
)

// search is what a root holds that a command must not read or write. It is
// brought up to date before each command: a directory is read again when its
// time of change says so.
type search struct {
	mu      sync.Mutex
	root    string
	folders map[string]*folder
	keys    map[string]keyFile
	hidden  map[fileID]*known // found and hidden the last time, or by an earlier server
	loaded  bool              // hidden has what Config.RecordDir holds
	saved   string            // what it holds
}

// folder is what one directory holds.
type folder struct {
	changed, read time.Time
	entries       int
	closed        bool // its owner may not list or enter it
	hidden        []string
	guarded       []string
	links         []string    // whose names are secret, to be resolved
	keys          []string    // files whose names suggest a private key
	below         []string    // directories to look into
	multiple      []otherName // files with several names; nil: not looked for yet
}

type keyFile struct {
	id      fileID
	changed time.Time
	size    int64
	secret  bool
}

func keyFileOf(info os.FileInfo) keyFile {
	id, _ := idOf(info)
	return keyFile{id: id, changed: changeTime(info), size: info.Size()}
}

// current reports whether what is known of a directory is what it still holds,
// by its time of change.
func (f *folder) current(changed time.Time) bool {
	return changed.Equal(f.changed) && f.read.Sub(changed) >= supervise.SettledAfter
}

// found is the result of a search.
type found struct {
	paths    map[string]os.FileInfo // not to be read, by path
	held     map[fileID]*os.File    // of paths: those of which the search holds no descriptor yet
	links    []string               // to files that are not to be read
	guard    []string
	whole    bool   // nothing was left out
	unstable string // a directory whose entries moved whenever they were looked at
}

// limits says what a search looks for.
type limits struct {
	hide      func(path string) bool
	lifted    func(path string) bool // is shown whatever it holds
	protected func(path string) string
}

// search returns what the runner knows of a root.
func (r *Runner) search(root string) *search {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen[root]
	if s == nil {
		s = &search{root: root, keys: map[string]keyFile{}, hidden: map[fileID]*known{}}
		r.seen[root] = s
	}
	return s
}

// Bounds of how often the search looks again for files that move during it.
const (
	mostRelists = 500 // directories read again because an entry vanished from them
	fewRounds   = 3   // of reading directories that changed within hotFor
	mostRounds  = 20  // the same, while they keep changing
	mostHot     = 400 // directories read in all of these
	hotFor      = time.Second
	// settled is the age from which a change is not one of a series. Times of
	// change have a resolution of up to 10 ms.
	settled = 20 * time.Millisecond
)

// update looks through the root, breadth first, within a bound. It follows no
// link: links returns those that are to be resolved. A directory or a secret that
// vanishes between its listing and its use was perhaps renamed, so its parent is
// read again.
func (s *search) update(l limits) found {
	w := &scan{search: s, limits: l, before: s.folders, stale: map[string]bool{}, left: searchEntries, all: found{whole: true, paths: map[string]os.FileInfo{}, held: map[fileID]*os.File{}}}
	s.folders = make(map[string]*folder, len(w.before))
	w.queue = []string{s.root}
	for rounds := 0; ; {
		w.drain()
		again := w.identify()
		if w.all.unstable != "" || !w.all.whole {
			break
		}
		if again { // reads the directories that files vanished from
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

// scan is one update of a search.
type scan struct {
	*search
	limits
	before  map[string]*folder // others read it at the same time, see spec.folders
	stale   map[string]bool    // of before, is not used
	queue   []string
	left    int // entries
	relists int
	hot     []string // directories that changed just now
	rereads int
	all     found
}

// drain reads the directories of the queue, and what is below them.
func (w *scan) drain() {
	for ; len(w.queue) > 0 && w.all.whole; w.queue = w.queue[1:] {
		if dir := w.queue[0]; w.folders[dir] == nil && !w.visit(dir) && dir != w.root {
			w.relist(filepath.Dir(dir))
		}
	}
}

// visit reports whether dir is a directory. It is read unless it is known.
func (w *scan) visit(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return err != nil && !gone(err)
	}
	f, changed := w.before[dir], changeTime(info)
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

// gone reports whether a file is not at its path any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// relist reads a directory again, or the nearest one above that still exists.
func (w *scan) relist(dir string) {
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

// forget makes visit read a directory.
func (w *scan) forget(dir string) {
	if f := w.folders[dir]; f != nil {
		w.left += f.entries
	}
	delete(w.folders, dir)
	w.stale[dir] = true
}

// identify looks up the files that must not be read. It reports whether one was not
// there, so that the search has to go on.
func (w *scan) identify() (again bool) {
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
			switch info, secret, err := w.holdsKey(path, keys); {
			case len(keys) > keyFiles:
				w.all.whole = false
			case err != nil || secret && !w.lifted(path):
				add(path, info, err)
			}
		}
	}
	w.search.keys = keys
	w.retain(earlier)
	for _, dir := range lost {
		w.relist(dir)
	}
	return len(lost) > 0 && w.all.unstable == ""
}

// readHot queues the directories that changed within hotFor, to be read again: perhaps
// a file is being moved from a directory that was not read yet into another that was.
// Unless always is true, it queues them only if one changed since it was read, or so
// shortly before that its time of change would not show the next change. It reports
// whether it queued any.
func (w *scan) readHot(always bool) (again bool) {
	if len(w.hot) == 0 {
		return false
	}
	for dir, f := range w.folders {
		info, err := os.Lstat(dir)
		if err == nil && changeTime(info).Equal(f.changed) {
			always = always || f.read.Sub(f.changed) < settled
			continue
		}
		always = true
		if !slices.Contains(w.hot, dir) { // it was read before it changed
			w.hot = append(w.hot, dir)
		}
	}
	if !always {
		return false
	}
	// In another order each time, so that no other program keeps in step.
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

// isRepository reports whether a directory with these entries is one of git's, as a
// bare one is under any name.
func isRepository(entries []os.DirEntry) bool {
	has := 0
	for _, entry := range entries {
		switch entry.Name() {
		case "HEAD", "objects", "refs":
			has++
		}
	}
	return has == 3
}

// readFolder sorts out the entries of a directory, unless they are more than
// left.
func readFolder(dir string, left int, l limits) (*folder, error) {
	f := &folder{read: time.Now()}
	d, err := os.Open(dir)
	if err != nil {
		return f, err
	}
	defer d.Close()
	entries, _ := d.ReadDir(left + 1)
	f.entries = len(entries)
	inGit := strings.Contains(dir+"/", "/.git/") || isRepository(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case entry.Type()&os.ModeSymlink != 0:
			if l.hide(path) {
				f.links = append(f.links, path)
			}
		case l.hide(path):
			f.hidden = append(f.hidden, path)
		case name == ".git" && entry.IsDir():
			f.below = append(f.below, path)
		case inGit && name == "config" && entry.Type().IsRegular(): // its repository is looked at as a whole, see tripwire
		case l.protected(path) != "":
			f.guarded = append(f.guarded, path)
		case entry.IsDir():
			if name != "node_modules" && !(inGit && (name == "objects" || name == "refs" || name == "logs")) && !pseudo(path) {
				f.below = append(f.below, path)
			}
		case entry.Type().IsRegular() && namedLikeKey(name):
			f.keys = append(f.keys, path)
		}
	}
	return f, nil
}

// pseudo reports whether a directory is one whose files the kernel makes up,
// or one that commands have for themselves.
func pseudo(path string) bool {
	return path == "/proc" || path == "/sys" || path == "/dev" || path == "/run"
}

// namedLikeKey reports whether a file may hold a private key, by its name. To
// read the beginnings of all files would take too long.
func namedLikeKey(name string) bool {
	lower := strings.ToLower(name)
	for _, end := range []string{".pem", ".key", ".p8", ".pk8", ".asc", ".gpg", ".ppk", ".crt", ".cer", ".cert"} {
		if strings.HasSuffix(lower, end) {
			return true
		}
	}
	if strings.HasSuffix(lower, ".pub") {
		return false
	}
	for _, word := range []string{"rsa", "ecdsa", "ed25519", "privkey", "private", "secret", "deploy_key", "deploykey", "ssh_key", "sshkey"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// holdsKey reports whether the file at path begins as a private key, and which file
// that is. What is known of it goes to known.
func (s *search) holdsKey(path string, known map[string]keyFile) (info os.FileInfo, secret bool, err error) {
	info, err = os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > keyFileBytes {
		return info, false, err
	}
	now, had := keyFileOf(info), s.keys[path]
	now.secret = had.secret
	if now != had || time.Since(now.changed) <= supervise.SettledAfter {
		if info, secret, err = beginsAsKey(path); err != nil {
			return info, false, err
		}
		now = keyFileOf(info) // perhaps another file than before
		now.secret = secret
	}
	known[path] = now
	return info, now.secret, nil
}

// beginsAsKey reports whether the file at path begins as a private key, and which
// file that is. The error is about a file that is not there. One that cannot be opened
// is taken for a key: a command might open it, after a chmod for example.
func beginsAsKey(path string) (info os.FileInfo, secret bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if gone(err) {
			return nil, false, err
		}
		info, err = os.Lstat(path)
		return info, err == nil && info.Mode().IsRegular(), err
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return info, false, err
	}
	head := make([]byte, keyHead)
	n, _ := io.ReadFull(f, head)
	return info, sandbox.IsPrivateKey(head[:n]), nil
}

// unsearched is the gap that a root too large to look through leaves.
func unsearched(root string) string {
	return fmt.Sprintf("secrets and protected files deep inside %s, which has more than %d entries", sandbox.EscapeName(root), searchEntries)
}
