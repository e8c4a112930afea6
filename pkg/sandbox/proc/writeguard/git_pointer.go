package writeguard

import (
	"os"
	"path/filepath"
	"strings"
)

// pointerTarget returns the directory that a .git or commondir names. Both are
// names in the root. ok is false if the directory is outside the root or does
// not exist.
func (v *inventory) pointerTarget(name string) (dir string, ok bool) {
	target, err := filepath.EvalSymlinks(readGitPointer(filepath.Join(v.root, name)))
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(v.root, target)
	return rel, err == nil && filepath.IsLocal(rel)
}

// readGitPointer returns the absolute path that a .git, commondir or gitdir
// contains, "" if it contains none. Like git, it reads a link to a file as if
// the file were in the place of the link. For another link it returns the
// link's target.
func readGitPointer(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	file := path
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err == nil && !filepath.IsAbs(target) {
			target = filepath.Dir(path) + "/" + target
		}
		if inner, err := os.Stat(path); err != nil || !inner.Mode().IsRegular() {
			return target
		}
		if file, err = filepath.EvalSymlinks(path); err != nil {
			return ""
		}
	}
	text, err := readRegularFile(file, 64<<10)
	target := strings.TrimRight(string(text), "\r\n")
	if err == nil && strings.EqualFold(filepath.Base(path), ".git") {
		var ok bool
		if target, ok = strings.CutPrefix(target, "gitdir:"); !ok {
			return ""
		}
		target = strings.TrimLeft(target, " ")
	}
	if err != nil || target == "" || filepath.IsAbs(target) {
		return target
	}
	return filepath.Dir(path) + "/" + target // not cleaned: the kernel applies ".." after it follows links
}
