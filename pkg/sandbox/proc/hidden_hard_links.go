package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// hardLink is one path of a file with several hard links.
type hardLink struct {
	path string
	id   fileID
}

// otherHardLinks adds the hard links of hidden files, in the roots and in the searched
// directories of the homes, to s.Mask and to objects, the hidden files of the roots. The
// result may contain the hidden files themselves. It returns a CONFLICT error if
// directories are moved too fast to find the links.
func (r *Runner) otherHardLinks(s *spec, objects []supervise.Pinned) ([]supervise.Pinned, error) {
	hiddenIDs := maps.Clone(s.hiddenLinks) // the number of links
	if hiddenIDs == nil {
		hiddenIDs = map[fileID]int{}
	}
	found := linkNames{}
	note := func(path string) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && fileinfo.Links(info) > 1 {
			if id, ok := fileIDOf(info); ok {
				hiddenIDs[id] = int(fileinfo.Links(info))
				found.addPath(id, path)
			}
		}
	}
	for _, path := range s.Mask {
		note(path)
	}
	for _, object := range objects {
		note(object.Path)
	}
	r.eachStoreFile(s, note)
	if len(hiddenIDs) == 0 {
		return objects, nil
	}
	var links []hardLink
	r.mu.Lock()
	changed := !maps.Equal(hiddenIDs, r.hardLinkedIDs)
	r.hardLinkedIDs = hiddenIDs
	r.mu.Unlock()
	add := func(f *dirCache, dir string) {
		if changed { // a file may have got another link since
			f.hardLinked = nil
		}
		for _, other := range f.hardLinkedFiles(dir) {
			if hiddenIDs[other.id] > 0 {
				links = append(links, other)
				found.addPath(other.id, other.path)
			}
		}
	}
	for _, root := range s.Roots {
		of := r.secretScanOf(root.Path)
		of.mu.Lock()
		for dir, f := range of.dirs {
			add(f, dir)
		}
		of.mu.Unlock()
	}
	dirs := slices.Clone(s.homeDirs)
	for _, home := range s.homes {
		for _, dir := range homeStoreDirs {
			dirs = append(dirs, filepath.Join(home, dir))
		}
	}
	slices.Sort(dirs)
	r.mu.Lock()
	for _, dir := range slices.Compact(dirs) {
		if f := r.homeDirCache[dir]; f != nil {
			add(f, dir)
		}
	}
	r.mu.Unlock()
	more, err := r.unsearchedHardLinks(s, hiddenIDs, found)
	if err != nil {
		return nil, err
	}
	s.severalLinks = hiddenIDs
	for _, link := range append(links, more...) {
		// The link may be moved before it is masked, so its identity is masked.
		if s.isInWritableRoot(link.path) {
			objects = append(objects, supervise.Pinned{Path: link.path, Dev: link.id.dev, Ino: link.id.ino})
		} else {
			s.Mask = append(s.Mask, link.path)
		}
	}
	return objects, nil
}

// hardLinkedFiles lists the regular files of a directory that have several hard
// links. The result is cached until the directory's time of change differs,
// since a new link changes that.
func (f *dirCache) hardLinkedFiles(dir string) []hardLink {
	if f.hardLinked != nil && f.readAt.Sub(f.changed) >= supervise.SettledAfter {
		return f.hardLinked
	}
	f.hardLinked = []hardLink{}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type() != 0 {
			continue
		}
		info, err := entry.Info()
		if err != nil || fileinfo.Links(info) < 2 {
			continue
		}
		if id, ok := fileIDOf(info); ok {
			f.hardLinked = append(f.hardLinked, hardLink{filepath.Join(dir, entry.Name()), id})
		}
	}
	return f.hardLinked
}

// eachStoreFile calls visit with the path of each file in the searched
// credential stores, up to maxStoreFiles.
func (r *Runner) eachStoreFile(s *spec, visit func(path string)) {
	left := maxStoreFiles
	for _, dir := range s.storeDirs {
		r.mu.Lock()
		f := r.storeDirCache[dir]
		r.mu.Unlock()
		if f == nil {
			continue
		}
		for _, name := range f.fileNames {
			if left--; left < 0 {
				return
			}
			visit(filepath.Join(dir, name))
		}
	}
}
