package writeguard

import (
	"io/fs"
	"os"
	"path/filepath"
)

// pathResolver resolves links in paths. It reads each file once, so it must
// only be used for a short time.
type pathResolver struct {
	root    string
	targets map[string]linkTarget // by paths
}

// linkTarget is the kind of the file at a path and, for a link, where it leads.
type linkTarget struct {
	path    string // of a link: where it leads
	isLink  bool
	isDir   bool
	missing bool
}

// read returns the kind and target of the file at path, from the file system at
// the first call for a path.
func (r *pathResolver) read(path string) linkTarget {
	if known, ok := r.targets[path]; ok {
		return known
	}
	var t linkTarget
	info, err := os.Lstat(path)
	t.isDir = err == nil && info.IsDir()
	if t.missing = err != nil; err == nil && info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		if err == nil && !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		t = linkTarget{path: to, isLink: err == nil, missing: err != nil}
	}
	if r.targets == nil {
		r.targets = map[string]linkTarget{}
	}
	r.targets[path] = t
	return t
}

// firstLink returns the same as the function firstLink, but asks the file system only
// once for each path. Both results are "" if there is no link.
func (r *pathResolver) firstLink(path string) (link, target string) {
	for at := len(filepath.VolumeName(path)) + 1; at <= len(path); at++ {
		if at < len(path) && !os.IsPathSeparator(path[at]) {
			continue
		}
		switch t := r.read(path[:at]); {
		case t.missing:
			return "", ""
		case t.isLink:
			return path[:at], filepath.Join(t.path, path[at:])
		}
	}
	return "", ""
}

// resolve resolves an absolute path, of which the last part need not exist. It
// returns its name in the root, "" if it is outside, and the names of the links in
// the root on the way to it, which may be the path itself. Another link in their
// place would lead elsewhere.
func (r *pathResolver) resolve(path string) (name string, links []string) {
	path = filepath.Clean(path)
	for range maxLinks {
		link, target := r.firstLink(path)
		if link == "" {
			break
		}
		if rel, err := filepath.Rel(r.root, link); err == nil && filepath.IsLocal(rel) && rel != "." {
			links = append(links, rel)
		}
		path = target
	}
	if rel, err := filepath.Rel(r.root, path); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return name, links
}
