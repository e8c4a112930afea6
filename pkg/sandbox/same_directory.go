package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// isInDirectory reports whether path is dir or is in it, also in another spelling if the
// file system treats both as the same name.
func isInDirectory(dir, path string) bool {
	above, down := len(splitPath(dir)), splitPath(path)
	return contains(dir, path) || len(down) >= above && isSameDirectory(joinPath(volumeTop(path), down[:above]), dir)
}

// volumeTop returns the top directory of path's volume: "/" or, on Windows, the
// drive or share.
func volumeTop(path string) string { return filepath.VolumeName(path) + pathSeparator }

// isSameDirectory reports whether two paths are spellings of the same directory. If they
// do not exist, it tests with the name of the repository next to them whether letter
// case matters there.
func isSameDirectory(a, b string) bool {
	if a == b || !strings.EqualFold(pathname.Fold(a), pathname.Fold(b)) {
		return a == b
	}
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	switch {
	case err == nil && err2 == nil:
		return os.SameFile(one, two)
	case err == nil || err2 == nil:
		return false
	}
	lower, err := os.Stat(filepath.Join(filepath.Dir(b), ".git"))
	upper, err2 := os.Stat(filepath.Join(filepath.Dir(b), ".GIT"))
	if err != nil {
		return foldsCase
	}
	return err2 == nil && os.SameFile(lower, upper)
}
