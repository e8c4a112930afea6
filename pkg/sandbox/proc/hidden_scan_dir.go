package proc

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// dirCache is the cached content of one directory. A search of a root, of a
// home or of a credential store sets only the lists that it needs.
type dirCache struct {
	changed, readAt time.Time // changed is the directory's time of change
	id              fileID    // of the directory, only set by a search of a root
	seenAt          time.Time // of a directory in a home: last found unchanged
	entryCount      int
	ownerBarred     bool       // its permissions keep its owner from listing or entering it
	hidden          []string   // paths of files that must not be read
	protected       []string   // paths of files that must not be written
	links           []string   // links with a secret's name, to be resolved
	keyCandidates   []string   // files whose names suggest a private key
	subdirs         []string   // subdirectories to search; in a store also links
	dotDirs         []string   // dot directories of a home
	fileNames       []string   // names of regular files in a credential store
	hardLinked      []hardLink // files with several links; nil: not searched yet
}

// isCurrent reports whether the directory has certainly not changed since it
// was read. changed is its current time of change.
func (f *dirCache) isCurrent(changed time.Time) bool {
	return isUnchanged(f.changed, f.readAt, changed)
}

// isUnchanged reports whether a directory with a time of change that was read at readAt
// has certainly not changed since. now is its current time of change.
func isUnchanged(changed, readAt, now time.Time) bool {
	return now.Equal(changed) && readAt.Sub(now) >= supervise.SettledAfter
}

// isGitDir reports whether a directory with these entries is a git directory. A
// bare repository may have any name.
func isGitDir(entries []os.DirEntry) bool {
	has := 0
	for _, entry := range entries {
		switch entry.Name() {
		case "HEAD", "objects", "refs":
			has++
		}
	}
	return has == 3
}

// isInProtectedDir reports whether dir, a directory in root, is protected with
// everything in it, or is in such a directory. A .git directory is not: only
// some of its entries are protected.
func (l scanRules) isInProtectedDir(root, dir string) bool {
	for ; len(dir) > len(root); dir = filepath.Dir(dir) {
		if filepath.Base(dir) != ".git" && l.whyProtected(dir) != "" {
			return true
		}
	}
	return false
}

// readDirCache reads a directory in root and classifies its entries. It reads
// at most maxEntries+1 entries. On an error it returns an empty dirCache as
// well.
func readDirCache(root, dir string, maxEntries int, rules scanRules) (*dirCache, error) {
	f := &dirCache{readAt: time.Now()}
	d, err := os.Open(dir)
	if err != nil {
		return f, err
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxEntries + 1)
	f.entryCount = len(entries)
	inProtected := rules.isInProtectedDir(root, dir) // the protected directory covers its entries
	inGit := strings.Contains(dir+"/", "/.git/") || isGitDir(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		isLink, isHidden := entry.Type()&os.ModeSymlink != 0, rules.isHidden(path)
		switch {
		case isLink && isHidden:
			f.links = append(f.links, path)
		case isHidden:
			f.hidden = append(f.hidden, path)
		}
		if isLink || isHidden {
			continue
		}
		isGit := name == ".git" && entry.IsDir()
		isGitConfig := inGit && name == "config" && entry.Type().IsRegular() // its repository is checked as a whole, see package writeguard
		if !inProtected && !isGit && !isGitConfig && rules.whyProtected(path) != "" {
			f.protected = append(f.protected, path)
		}
		switch {
		case isGit:
			f.subdirs = append(f.subdirs, path)
		case entry.IsDir():
			if name != "node_modules" && !(inGit && (name == "objects" || name == "refs" || name == "logs")) && !fileinfo.IsPseudoDir(path) {
				f.subdirs = append(f.subdirs, path)
			}
		case entry.Type().IsRegular() && secret.MaybeKeyName(name):
			f.keyCandidates = append(f.keyCandidates, path)
		}
	}
	return f, nil
}
