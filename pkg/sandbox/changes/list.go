package changes

import (
	"io/fs"
	"os"
	"path"
)

// readRootDir lists a directory of a root. Unlike fs.ReadDir it takes names
// that are not UTF-8.
func readRootDir(real *os.Root, rel string) ([]fs.DirEntry, error) {
	dir, err := real.Open(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	return dir.ReadDir(-1)
}

// walkRoot calls visit with each file of a tree, a directory before its
// entries, until visit returns false. info is nil where the file cannot be
// looked at. A directory that cannot be listed is visited twice, the second
// time with the error. It follows no link.
func walkRoot(real *os.Root, rel string, visit func(rel string, info fs.FileInfo, err error) bool) bool {
	info, err := real.Lstat(rel)
	if !visit(rel, info, err) {
		return false
	}
	if err != nil || !info.IsDir() {
		return true
	}
	entries, err := readRootDir(real, rel)
	if err != nil {
		return visit(rel, info, err)
	}
	for _, e := range entries {
		if !walkRoot(real, path.Join(rel, e.Name()), visit) {
			return false
		}
	}
	return true
}
