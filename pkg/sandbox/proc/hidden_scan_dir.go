package proc

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// folder is the cached content of one directory.
type folder struct {
	changed, read time.Time
	entries       int
	closed        bool // its permissions keep its owner from listing or entering it
	hidden        []string
	guarded       []string
	links         []string    // links with a secret's name, to be resolved
	keys          []string    // files whose names suggest a private key
	below         []string    // subdirectories to search
	dotted        []string    // dot directories of a home
	files         []string    // names of regular files in a credential store
	multiple      []otherName // files with several links; nil: not searched yet
}

// current reports whether the cached content is still that of the directory,
// whose time of change is now changed.
func (f *folder) current(changed time.Time) bool {
	return changed.Equal(f.changed) && f.read.Sub(changed) >= supervise.SettledAfter
}

// isRepository reports whether a directory with these entries is a git
// directory. A bare repository may have any name.
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

// readFolder classifies the entries of a directory. It reads at most left+1
// entries.
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
		case inGit && name == "config" && entry.Type().IsRegular(): // its repository is judged as a whole, see writeGuard
		case l.protected(path) != "":
			f.guarded = append(f.guarded, path)
		case entry.IsDir():
			if name != "node_modules" && !(inGit && (name == "objects" || name == "refs" || name == "logs")) && !fileinfo.IsPseudoDir(path) {
				f.below = append(f.below, path)
			}
		case entry.Type().IsRegular() && namedLikeKey(name):
			f.keys = append(f.keys, path)
		}
	}
	return f, nil
}
