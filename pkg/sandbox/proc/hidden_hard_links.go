package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

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

// secondNames calls note with each file of the searched credential stores, whose
// other hard links must be masked too.
func (r *Runner) secondNames(s *spec, note func(path string)) {
	left := storeFiles
	for _, dir := range s.stores {
		r.mu.Lock()
		f := r.stores[dir]
		r.mu.Unlock()
		if f == nil {
			continue
		}
		for _, name := range f.files {
			if left--; left < 0 {
				return
			}
			note(filepath.Join(dir, name))
		}
	}
}
