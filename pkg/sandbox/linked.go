package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// How much is looked through for links of credential stores into the roots.
const (
	linkDepth = 32
	linkDirs  = 64
	// Of the roots, links deeper in them.
	rootDepth   = 3
	rootDirs    = 24
	rootEntries = 3000
	// mostLooked bounds the directories that are remembered.
	mostLooked = 1000
	// linksEvery is the time between two searches for links.
	linksEvery = time.Second
)

// homeDirs are directories of a home that have credential stores as entries.
var homeDirs = secret.StoreDirs()

// linkedSecrets lists the files and directories in the roots that a secret name
// elsewhere leads to: ~/.aws -> project/dotfiles/aws. Paths are absolute and
// without links. nil is empty.
type linkedSecrets struct {
	denied, masked []string
	// several are secret files with several names, that are hard links: true
	// for those that are denied, false for those that are masked.
	several map[objectID]bool
}

// objectID identifies a file while it exists.
type objectID struct{ dev, ino uint64 }

func (l *linkedSecrets) hasAny() bool { return l != nil && len(l.denied)+len(l.masked) > 0 }

// isDenied reports whether a link of a credential store leads to path, or to a
// directory that it is in.
func (l *linkedSecrets) isDenied(path string) bool {
	return l != nil && slices.ContainsFunc(l.denied, func(target string) bool { return contains(target, path) })
}

// isMasked reports whether a link named as a file of settings leads to path.
func (l *linkedSecrets) isMasked(path string) bool {
	return l != nil && len(l.masked) > 0 && slices.Contains(l.masked, path)
}

// lookupObject looks a file up among the secret files with several names. ok is false
// if it is none of them. denied tells whether it is refused, or else masked.
func (l *linkedSecrets) lookupObject(st Stat) (denied, ok bool) {
	if l == nil || len(l.several) == 0 || st.Nlink < 2 {
		return false, false
	}
	denied, ok = l.several[objectID{st.Dev, st.Ino}]
	return denied, ok
}

func (l *linkedSecrets) equal(other *linkedSecrets) bool {
	return slices.Equal(l.denied, other.denied) && slices.Equal(l.masked, other.masked) && maps.Equal(l.several, other.several)
}

// linkSearch looks for names that lead to secrets.
type linkSearch struct {
	fs     *FS
	look   func(dir string) *dirListing
	stores []string // homes and roots
	found  linkedSecrets
	seen   map[string]bool
	dirs   int
}

// findLinkedSecrets searches the homes of this user and the roots. Stores are looked
// through for links that lead out of them.
func (s *Sandbox) findLinkedSecrets(f *FS) *linkedSecrets {
	l := &linkSearch{fs: f, look: s.readListing, stores: append(Homes(s.config.Getenv), f.Paths()...), seen: map[string]bool{}}
	l.found.several = map[objectID]bool{}
	var queue []string
	for _, store := range l.stores {
		for _, dir := range homeDirs {
			dir := filepath.Join(store, dir)
			queue = append(queue, l.secretsIn(dir, s.readListing(dir).maybeSecret)...)
		}
	}
	queue = append(queue, l.searchRoots()...)
	for depth := 0; depth <= linkDepth && len(queue) > 0; depth++ {
		var next []string
		for _, path := range queue {
			next = append(next, l.follow(path)...)
		}
		queue = next
	}
	slices.Sort(l.found.denied)
	slices.Sort(l.found.masked)
	l.found.denied, l.found.masked = slices.Compact(l.found.denied), slices.Compact(l.found.masked)
	return &l.found
}

// secretsIn returns the entries of a directory that are secrets by name, and
// notes those that are masked.
func (l *linkSearch) secretsIn(dir string, names []string) (secrets []string) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		denied := secret.IsPath(path)
		if !denied && !secret.IsSettings(name) || l.fs.isAllowed(path) {
			continue
		}
		if denied {
			secrets = append(secrets, path)
		} else if real, err := filepath.EvalSymlinks(path); err == nil && real != path && l.isMarkable(real) && !secret.IsSettings(pathname.Base(real)) {
			if info, err := os.Lstat(real); err == nil && info.Mode().IsRegular() {
				l.found.masked = append(l.found.masked, real)
			}
		}
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			if st := statOfInfo(info); st.Nlink > 1 {
				l.found.several[objectID{st.Dev, st.Ino}] = denied || l.found.several[objectID{st.Dev, st.Ino}]
			}
		}
	}
	return secrets
}

// isMarkable reports whether what a link leads to is in a root, not a secret by
// its own name and not lifted.
func (l *linkSearch) isMarkable(real string) bool {
	return l.fs.isInRoot(real) && !secret.IsPath(real) && !l.fs.isAllowed(real)
}

// searchRoots looks for links with secret names deeper in the roots, breadth first
// and within a bound.
func (l *linkSearch) searchRoots() (secrets []string) {
	queue := slices.Clone(l.fs.Paths())
	dirs, left := 0, rootEntries
	for depth := 0; depth <= rootDepth; depth++ {
		var next []string
		for _, dir := range queue {
			if dirs++; dirs > rootDirs || left < 0 {
				return secrets
			}
			at := l.look(dir)
			left -= at.entries
			if depth > 0 {
				secrets = append(secrets, l.secretsIn(dir, at.maybeSecret)...)
			}
			for _, name := range at.below {
				if name[0] != '.' && name != "node_modules" && !slices.Contains(at.links, name) {
					next = append(next, filepath.Join(dir, name))
				}
			}
		}
		queue = next
	}
	return secrets
}

// follow notes where a secret leads to, and returns the links and directories
// in it.
func (l *linkSearch) follow(path string) (below []string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || l.seen[real] {
		return nil
	}
	l.seen[real] = true
	if real != path {
		if slices.ContainsFunc(l.stores, func(dir string) bool { return contains(real, dir) }) {
			return nil // all of a root or a home is no secret
		}
		if l.isMarkable(real) {
			l.found.denied = append(l.found.denied, real)
		}
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() || l.dirs >= linkDirs {
		return nil
	}
	l.dirs++
	for _, name := range l.look(real).below {
		below = append(below, filepath.Join(real, name))
	}
	return below
}

// dirListing holds the names in a directory that the search for links needs.
type dirListing struct {
	changed, read time.Time
	entries       int
	maybeSecret   []string // names that may be secret
	below         []string // directories and links
	links         []string // of those
}

// settledAge is how old a change of a directory has to be for its time to tell it
// from a later one.
const settledAge = 2 * time.Second

// readListing reads a directory, again when its time of change says so. The caller
// holds s.mu.
func (s *Sandbox) readListing(dir string) *dirListing {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return &dirListing{}
	}
	now := &dirListing{changed: statOfInfo(info).ChangeTime, read: time.Now()}
	if known := s.looked[dir]; known != nil && !now.changed.IsZero() && known.changed.Equal(now.changed) && known.read.Sub(now.changed) > settledAge {
		return known
	}
	entries, _ := os.ReadDir(dir)
	now.entries = len(entries)
	above := secret.MaybeIn(dir)
	for _, entry := range entries {
		name, link := entry.Name(), entry.Type()&os.ModeSymlink != 0
		if above || secret.MaybeEntry(name) {
			now.maybeSecret = append(now.maybeSecret, name)
		}
		if entry.IsDir() || link {
			now.below = append(now.below, name)
		}
		if link {
			now.links = append(now.links, name)
		}
	}
	if s.looked == nil || len(s.looked) > mostLooked {
		s.looked = map[string]*dirListing{}
	}
	s.looked[dir] = now
	return now
}

// linksChanged reports whether a link of a credential store leads elsewhere than before.
func (s *Sandbox) linksChanged(f *FS) bool {
	if time.Since(s.linksRead) < linksEvery {
		return false
	}
	s.linksRead = time.Now()
	return !s.findLinkedSecrets(f).equal(f.linked)
}

// isLinkedName reports whether an entry of this name in d may be one that a link
// of a credential store or of a file of settings leads to.
func (d *Dir) isLinkedName(name string) bool {
	if !d.linked.hasAny() {
		return false
	}
	for _, targets := range [...][]string{d.linked.denied, d.linked.masked} {
		for _, target := range targets {
			if strings.HasSuffix(target, name) && pathname.Base(target) == name {
				return true
			}
		}
	}
	return false
}

// checkNotDenied is the error for an entry that a link of a credential store leads to.
func (d *Dir) checkNotDenied(name string) error {
	if !d.linked.hasAny() || !d.linked.isDenied(d.join(name)) {
		return nil
	}
	return toolerr.New(toolerr.DeniedPath, "%s is not read: a credential store links to it", pathname.Escape(d.join(name)))
}

// checkFileNotDenied is the error for an open file that is a secret by another name.
func (d *Dir) checkFileNotDenied(name string, st Stat) error {
	if denied, ok := d.linked.lookupObject(st); !ok || !denied {
		return nil
	}
	return toolerr.New(toolerr.DeniedPath, "%s is not read: it is also linked as a credential store", pathname.Escape(d.join(name)))
}
