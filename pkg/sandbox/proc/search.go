package proc

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	hidden  map[string]os.FileInfo // what was found and hidden the last time
}

// folder is what one directory holds.
type folder struct {
	changed, read time.Time
	entries       int
	hidden        []string
	guarded       []string
	gitConfigs    []string
	keys          []string // files whose names suggest a private key
	below         []string // directories to look into
}

type keyFile struct {
	changed time.Time
	size    int64
	secret  bool
}

// current reports whether what is known of a directory is what it still holds,
// by its time of change.
func (f *folder) current(changed time.Time) bool {
	return changed.Equal(f.changed) && f.read.Sub(changed) >= supervise.SettledAfter
}

// found is the result of a search.
type found struct {
	mask, guard []string
	gitConfigs  []string
	whole       bool // nothing was left out
}

// limits says what a search looks for.
type limits struct {
	hide      func(path string) bool
	lifted    func(path string) bool // is shown whatever it holds
	protected func(path string) string
}

// search returns what is in a root now.
func (r *Runner) search(root string, l limits) found {
	r.mu.Lock()
	s := r.seen[root]
	if s == nil {
		s = &search{root: root, keys: map[string]keyFile{}}
		r.seen[root] = s
	}
	r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.update(l)
}

// update looks through the root, breadth first, within a bound. It follows no
// link: what one leads to has another name, in the root or outside.
func (s *search) update(l limits) found {
	all := found{whole: true}
	before := s.folders
	s.folders = make(map[string]*folder, len(before))
	queue := []string{s.root}
	for left := searchEntries; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		f := before[dir]
		if changed := changeTime(info); f == nil || !f.current(changed) {
			f = readFolder(dir, left, l)
			f.changed = changed
		}
		if left -= f.entries; left < 0 {
			all.whole = false
			break
		}
		s.folders[dir] = f
		all.mask = append(all.mask, f.hidden...)
		all.guard = append(all.guard, f.guarded...)
		all.gitConfigs = append(all.gitConfigs, f.gitConfigs...)
		queue = append(queue, f.below...)
	}
	keys := make(map[string]keyFile, len(s.keys))
	for _, f := range s.folders {
		for _, path := range f.keys {
			if len(keys) >= keyFiles {
				all.whole = false
			} else if s.holdsKey(path, keys) && !l.lifted(path) {
				all.mask = append(all.mask, path)
			}
		}
	}
	s.keys = keys
	s.keepKnown(&all, l)
	return all
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
func readFolder(dir string, left int, l limits) *folder {
	f := &folder{read: time.Now()}
	d, err := os.Open(dir)
	if err != nil {
		return f
	}
	defer d.Close()
	entries, _ := d.ReadDir(left + 1)
	f.entries = len(entries)
	inGit := strings.Contains(dir+"/", "/.git/") || isRepository(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case entry.Type()&os.ModeSymlink != 0:
		case l.hide(path):
			f.hidden = append(f.hidden, path)
		case name == ".git" && entry.IsDir():
			f.below = append(f.below, path)
		case inGit && name == "config" && entry.Type().IsRegular(): // its repository is looked at as a whole, see tripwire
			f.gitConfigs = append(f.gitConfigs, path)
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
	return f
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

// holdsKey reports whether a file begins as a private key. What is known of it
// goes to known.
func (s *search) holdsKey(path string, known map[string]keyFile) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > keyFileBytes {
		return false
	}
	now := keyFile{changed: changeTime(info), size: info.Size()}
	had, ok := s.keys[path]
	if ok && had.changed.Equal(now.changed) && had.size == now.size && time.Since(now.changed) > supervise.SettledAfter {
		now.secret = had.secret
	} else {
		now.secret = beginsAsKey(path)
	}
	known[path] = now
	return now.secret
}

func beginsAsKey(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeType != 0 {
		return false
	}
	head := make([]byte, keyHead)
	n, _ := io.ReadFull(f, head)
	return sandbox.IsPrivateKey(head[:n])
}

// unsearched is the gap that a root too large to look through leaves.
func unsearched(root string) string {
	return fmt.Sprintf("secrets and protected files deep inside %s, which has more than %d entries", sandbox.EscapeName(root), searchEntries)
}
