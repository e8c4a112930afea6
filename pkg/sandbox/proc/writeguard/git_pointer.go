package writeguard

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// gitPointerDir returns the directory that the .git or commondir called name leads to.
// name and dir are relative to the root. ok is false if the file contains no path, or
// the directory is outside the root or does not exist.
func (v *inventory) gitPointerDir(name string) (dir string, ok bool) {
	pointed, _ := readGitPointer(filepath.Join(v.root, name))
	target, err := filepath.EvalSymlinks(pointed)
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(v.root, target)
	return rel, err == nil && filepath.IsLocal(rel)
}

// maxPointerBytes bounds a .git, as git does (read_gitfile_gently of setup.c).
const maxPointerBytes = 1 << 20

// readGitPointer returns the absolute path that a .git, commondir or gitdir
// contains, "" if it contains none. Like git, it reads a link to a file as if
// the file were in the place of the link. For another link it returns the
// link's target. ok is false for a file that git may read otherwise: with
// control characters in the path, too large, or not readable.
func readGitPointer(path string) (target string, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", true
	}
	file := path
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err == nil && !filepath.IsAbs(target) {
			target = filepath.Dir(path) + "/" + target
		}
		if inner, err := os.Stat(path); err != nil || !inner.Mode().IsRegular() {
			return target, true
		}
		if file, err = filepath.EvalSymlinks(path); err != nil {
			return "", true
		}
	}
	text, err := readRegularFile(file, maxPointerBytes)
	if err != nil {
		return "", false
	}
	target, ok = gitfile.PointerTarget(strings.ToLower(filepath.Base(path)), text)
	if target == "" || filepath.IsAbs(target) {
		return target, ok
	}
	return filepath.Dir(path) + "/" + target, ok // not cleaned: the kernel applies ".." after it follows links
}
