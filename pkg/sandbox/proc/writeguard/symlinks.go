package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds the symbolic links on the way to a file, as the kernel does.
const maxLinks = 40

// appendLinks appends to names the names of the links in the root on the way to
// path, which may itself be a link. Another link in their place would lead
// elsewhere.
func appendLinks(names []string, root, path string) []string {
	for range maxLinks {
		link, target := firstLink(path)
		if link == "" {
			break
		}
		if rel, err := filepath.Rel(root, link); err == nil && filepath.IsLocal(rel) && rel != "." {
			names = append(names, rel)
		}
		path = target
	}
	return names
}

// firstLink returns the first link on the way to an absolute path, and the path
// with this link replaced by its target. Both are "" if there is no link.
func firstLink(path string) (link, target string) {
	path = filepath.Clean(path)
	for at := len(filepath.VolumeName(path)) + 1; at <= len(path); at++ {
		if at < len(path) && !os.IsPathSeparator(path[at]) {
			continue
		}
		info, err := os.Lstat(path[:at])
		if err != nil {
			return "", ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		to, err := os.Readlink(path[:at])
		if err != nil {
			return "", ""
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path[:at]), to)
		}
		return path[:at], filepath.Join(to, path[at:])
	}
	return "", ""
}

// resolveExisting resolves the links of path, of which the last part need not
// exist: a link to nothing is resolved, too. On another error it returns path.
func resolveExisting(path string) string {
	path = filepath.Clean(path)
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		return resolved
	case !errors.Is(err, fs.ErrNotExist):
		return path
	}
	for range maxLinks {
		link, target := firstLink(path)
		if link == "" {
			break
		}
		path = target
	}
	return path
}
