package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Bounds of the search for links from credential stores into the roots.
const (
	maxLinkDepth  = 32
	maxLinkedDirs = 64
	// Bounds of the search for links deeper in the roots.
	maxRootDepth   = 3
	maxRootDirs    = 24
	maxRootEntries = 3000
	// maxListings bounds the directories whose listings are kept.
	maxListings = 1000
	// linkSearchInterval is the least time between two searches for links.
	linkSearchInterval = time.Second
)

// credentialDirs lists directories of a home that contain credential stores.
var credentialDirs = secret.StoreDirs()

// linkedSecrets holds the files and directories in the roots to which a secret name
// outside of them is a link, such as ~/.aws -> project/dotfiles/aws. Paths are
// absolute and contain no links. nil means none.
type linkedSecrets struct {
	denied, masked []string
	// hardLinked holds the secret files that have several hard links: true for denied
	// files, false for masked ones.
	hardLinked map[objectID]bool
}

// objectID identifies a file while it exists.
type objectID struct{ dev, ino uint64 }

// hasAny reports whether any file or directory is marked as denied or masked;
// false for nil.
func (l *linkedSecrets) hasAny() bool { return l != nil && len(l.denied)+len(l.masked) > 0 }

// isDenied reports whether a link of a credential store points to path, or to a
// directory that contains it.
func (l *linkedSecrets) isDenied(path string) bool {
	return l != nil && slices.ContainsFunc(l.denied, func(target string) bool { return contains(target, path) })
}

// isMasked reports whether a link with the name of a settings file points to path, so
// that the values in path are masked. It returns false for a nil l.
func (l *linkedSecrets) isMasked(path string) bool {
	return l != nil && len(l.masked) > 0 && slices.Contains(l.masked, path)
}

// lookupObject looks up the file with the metadata st among the secret files that have
// several hard links. ok is false if it is not one of them. denied is false if the file
// is only masked.
func (l *linkedSecrets) lookupObject(st Stat) (denied, ok bool) {
	if l == nil || len(l.hardLinked) == 0 || st.Nlink < 2 {
		return false, false
	}
	denied, ok = l.hardLinked[objectID{st.Dev, st.Ino}]
	return denied, ok
}

// equal reports whether l and other hold the same files. Neither may be nil.
func (l *linkedSecrets) equal(other *linkedSecrets) bool {
	return slices.Equal(l.denied, other.denied) && slices.Equal(l.masked, other.masked) && maps.Equal(l.hardLinked, other.hardLinked)
}

// linkSearch is the state of one search for links to files in the roots with
// the names of secrets.
type linkSearch struct {
	fs      *FS
	readDir func(dir string) *dirListing
	stores  []string // homes and roots
	found   linkedSecrets
	seen    map[string]bool
	dirs    int
}

// findLinkedSecrets searches the credential stores in the user's homes, and the
// upper levels of the roots, for links with secret names. It returns the files
// and directories in the roots of f that they point to. The caller holds s.mu.
func (s *Sandbox) findLinkedSecrets(f *FS) *linkedSecrets {
	l := &linkSearch{fs: f, readDir: s.readListing, stores: append(Homes(s.config.Getenv), f.Paths()...), seen: map[string]bool{}}
	l.found.hardLinked = map[objectID]bool{}
	var queue []string
	for _, store := range l.stores {
		for _, dir := range credentialDirs {
			dir := filepath.Join(store, dir)
			queue = append(queue, l.secretsIn(dir, s.readListing(dir).maybeSecret)...)
		}
	}
	queue = append(queue, l.searchRoots()...)
	for depth := 0; depth <= maxLinkDepth && len(queue) > 0; depth++ {
		var next []string
		for _, path := range queue {
			next = append(next, l.followSecret(path)...)
		}
		queue = next
	}
	slices.Sort(l.found.denied)
	slices.Sort(l.found.masked)
	l.found.denied, l.found.masked = slices.Compact(l.found.denied), slices.Compact(l.found.masked)
	return &l.found
}

// secretsIn returns the paths of the entries names of dir that are secrets by their names
// and that the user did not allow. It adds to l.found the files to mask, to which links
// with names of settings files lead, and the files that have several hard links.
func (l *linkSearch) secretsIn(dir string, names []string) (secrets []string) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		denied := secret.IsPath(path)
		if !denied && !secret.IsSettingsPath(path) || l.fs.isAllowed(path) {
			continue
		}
		if denied {
			secrets = append(secrets, path)
		} else if real, err := filepath.EvalSymlinks(path); err == nil && real != path && l.canBecomeSecret(real) && !secret.IsSettingsPath(real) {
			if info, err := os.Lstat(real); err == nil && info.Mode().IsRegular() {
				l.found.masked = append(l.found.masked, real)
			}
		}
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			if st := statOfInfo(info); st.Nlink > 1 {
				l.found.hardLinked[objectID{st.Dev, st.Ino}] = denied || l.found.hardLinked[objectID{st.Dev, st.Ino}]
			}
		}
	}
	return secrets
}

// canBecomeSecret reports whether the target of a link is in a root, is not a secret by its
// own name, and is not lifted by --allow-path.
func (l *linkSearch) canBecomeSecret(real string) bool {
	return l.fs.isInRoot(real) && !secret.IsPath(real) && !l.fs.isAllowed(real)
}

// searchRoots searches the roots for links with secret names, breadth first and within
// a bound, and then the hidden directories that it found, within another bound: those
// with project settings first.
func (l *linkSearch) searchRoots() (secrets []string) {
	var settings, hidden []string
	search := func(queue []string, depth int) {
		dirs, left := 0, maxRootEntries
		for ; depth <= maxRootDepth; depth++ {
			var next []string
			for _, dir := range queue {
				if dirs++; dirs > maxRootDirs || left < 0 {
					return
				}
				at := l.readDir(dir)
				left -= at.entries
				if depth > 0 {
					secrets = append(secrets, l.secretsIn(dir, at.maybeSecret)...)
				}
				for _, name := range at.subdirsAndLinks {
					path := filepath.Join(dir, name)
					switch {
					case name == "node_modules" || slices.Contains(at.links, name):
					case name == ".git":
						settings = append(settings, filepath.Join(path, "hooks"))
					case name[0] != '.':
						next = append(next, path)
					case projectfile.IsSettingsPath(name, nil):
						settings = append(settings, path)
					default:
						hidden = append(hidden, path)
					}
				}
			}
			queue = next
		}
	}
	search(slices.Clone(l.fs.Paths()), 0)
	search(append(settings, hidden...), 1)
	return secrets
}

// followSecret records the target of path, a secret name, as denied if path is a link
// to something in a root. It returns the entries of the target, if that is a directory,
// that are to be followed next.
func (l *linkSearch) followSecret(path string) (below []string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || l.seen[real] {
		return nil
	}
	l.seen[real] = true
	if real != path {
		if slices.ContainsFunc(l.stores, func(dir string) bool { return contains(real, dir) }) {
			return nil // a whole root or home is not a secret
		}
		if l.canBecomeSecret(real) {
			l.found.denied = append(l.found.denied, real)
		}
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() || l.dirs >= maxLinkedDirs {
		return nil
	}
	l.dirs++
	for _, name := range l.readDir(real).subdirsAndLinks {
		below = append(below, filepath.Join(real, name))
	}
	return below
}

// dirListing holds the entries of a directory that linkSearch needs, and the
// times to recognize a change.
type dirListing struct {
	changed, read   time.Time
	entries         int
	maybeSecret     []string // names that can be secret
	subdirsAndLinks []string // directories and links
	links           []string // the links among below
}

// minListingAge is the least age of a directory's last change at which a later change is
// certain to have another time.
const minListingAge = 2 * time.Second

// readListing reads a directory. It returns the previous listing if the directory's
// change time is the same and was not too recent, and an empty listing if dir cannot be
// read. The caller holds s.mu.
func (s *Sandbox) readListing(dir string) *dirListing {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return &dirListing{}
	}
	now := &dirListing{changed: statOfInfo(info).ChangeTime, read: time.Now()}
	if known := s.listings[dir]; known != nil && !now.changed.IsZero() && known.changed.Equal(now.changed) && known.read.Sub(now.changed) > minListingAge {
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
			now.subdirsAndLinks = append(now.subdirsAndLinks, name)
		}
		if link {
			now.links = append(now.links, name)
		}
	}
	if s.listings == nil || len(s.listings) > maxListings {
		s.listings = map[string]*dirListing{}
	}
	s.listings[dir] = now
	return now
}

// haveLinksChanged reports whether the target of a link of a credential store has
// changed. It looks at most once in linkSearchInterval, and returns false in between.
func (s *Sandbox) haveLinksChanged(f *FS) bool {
	if time.Since(s.linksCheckedAt) < linkSearchInterval {
		return false
	}
	s.linksCheckedAt = time.Now()
	return !s.findLinkedSecrets(f).equal(f.linked)
}

// isLinkedName reports whether the entry name of d can be the target of a link from a
// credential store, or of a link named like a settings file.
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

// checkNotDenied returns DENIED_PATH for an entry to which a link of a credential store
// points.
func (d *Dir) checkNotDenied(name string) error {
	if !d.linked.hasAny() || !d.linked.isDenied(d.join(name)) {
		return nil
	}
	return toolerr.New(toolerr.DeniedPath, "%s is not read: a credential store links to it", pathname.Escape(d.join(name)))
}

// checkFileNotDenied returns DENIED_PATH for an open file that is a secret by another
// hard link.
func (d *Dir) checkFileNotDenied(name string, st Stat) error {
	if denied, ok := d.linked.lookupObject(st); !ok || !denied {
		return nil
	}
	return toolerr.New(toolerr.DeniedPath, "%s is not read: it is also linked as a credential store", pathname.Escape(d.join(name)))
}
