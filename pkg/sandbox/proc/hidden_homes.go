package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// Bounds of the search for credential stores in deeper directories of a home.
const (
	deepDepth   = 4
	deepDirs    = 300
	deepEntries = 10_000
	deepMasks   = 200
)

// inHome returns the hidden entries and the subdirectories of a directory in a
// home. The result is cached until the directory's time of change differs.
func (r *Runner) inHome(dir string, hide func(string) bool) *folder {
	info, err := os.Stat(dir)
	if err != nil {
		return &folder{}
	}
	changed := fileinfo.ChangeTime(info)
	r.mu.Lock()
	known := r.home[dir]
	r.mu.Unlock()
	if known != nil && known.current(changed) {
		return known
	}
	now := &folder{read: time.Now(), changed: changed}
	entries, _ := os.ReadDir(dir)
	now.entries = len(entries)
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		switch {
		case hide(path):
			now.hidden = append(now.hidden, path)
		case entry.IsDir() && name[0] == '.':
			now.dotted = append(now.dotted, path)
		case entry.IsDir() && name != "node_modules":
			now.below = append(now.below, path)
		}
	}
	r.mu.Lock()
	r.home[dir] = now
	r.mu.Unlock()
	return now
}

// deepInHome lists the hidden files in the visible directories of a home,
// breadth first and within the bounds above, and then those directly in its
// dot directories. It skips roots, which are searched separately.
func (r *Runner) deepInHome(s *spec, home string, hide func(string) bool) (hidden []string) {
	queue := slices.Clone(r.inHome(home, hide).below)
	left := deepEntries
	for depth := 1; depth < deepDepth; depth++ {
		var next []string
		for _, dir := range queue {
			root := slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return root.Path == dir })
			if root || len(s.deep) >= deepDirs || left < 0 || len(hidden) >= deepMasks {
				continue
			}
			s.deep = append(s.deep, dir)
			f := r.inHome(dir, hide)
			left -= f.entries
			hidden = append(hidden, f.hidden...)
			next = append(next, f.below...)
		}
		queue = next
	}
	return append(hidden, r.hiddenBelow(s, home, hide, &left)...)
}

// otherName is one name of a file with several hard links.
type otherName struct {
	path string
	id   fileID
}

// otherNames lists the other hard links of hidden files, in the roots and in
// the searched directories of the homes.
func (r *Runner) otherNames(s *spec, objects []supervise.Pinned) (names []string) {
	several := map[fileID]bool{}
	note := func(path string) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && fileinfo.Links(info) > 1 {
			if id, ok := idOf(info); ok {
				several[id] = true
			}
		}
	}
	for _, path := range s.Mask {
		note(path)
	}
	for _, object := range objects {
		note(object.Path)
	}
	r.secondNames(s, note)
	if len(several) == 0 {
		return nil
	}
	r.mu.Lock()
	fresh := !maps.Equal(several, r.several)
	r.several = several
	r.mu.Unlock()
	add := func(f *folder, dir string) {
		if fresh { // a file may have got another link since
			f.multiple = nil
		}
		for _, other := range f.severalIn(dir) {
			if several[other.id] {
				names = append(names, other.path)
			}
		}
	}
	for _, root := range s.Roots {
		of := r.secretScan(root.Path)
		of.mu.Lock()
		for dir, f := range of.folders {
			add(f, dir)
		}
		of.mu.Unlock()
	}
	dirs := slices.Clone(s.deep)
	for _, home := range s.homes {
		for _, dir := range homeDirs {
			dirs = append(dirs, filepath.Join(home, dir))
		}
	}
	slices.Sort(dirs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dir := range slices.Compact(dirs) {
		if f := r.home[dir]; f != nil {
			add(f, dir)
		}
	}
	return names
}

// severalIn lists the files of a directory that have several hard links. The
// result is cached until the directory's time of change differs, since a new
// link changes that.
func (f *folder) severalIn(dir string) []otherName {
	if f.multiple != nil && f.read.Sub(f.changed) >= supervise.SettledAfter {
		return f.multiple
	}
	f.multiple = []otherName{}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type() != 0 {
			continue
		}
		info, err := entry.Info()
		if err != nil || fileinfo.Links(info) < 2 {
			continue
		}
		if id, ok := idOf(info); ok {
			f.multiple = append(f.multiple, otherName{filepath.Join(dir, entry.Name()), id})
		}
	}
	return f.multiple
}
