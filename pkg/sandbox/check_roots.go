package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// CheckRoots checks args, the positional command line arguments, each of which names a
// root. It returns an error for the first one that is not a directory: NotFound, with the
// names of up to three similar directories, or NotADirectory. It opens no directory, and
// leaves malformed arguments to Validate. If a root disappears later, each call reports
// that.
func (c *Config) CheckRoots(args []string) error {
	s := New(*c)
	for _, arg := range args {
		dir, _ := splitRootSpec(arg)
		if dir == "" || checkName(dir) != nil {
			continue // Validate refuses it
		}
		abs, err := s.expandDir(dir)
		if err != nil {
			return err
		}
		info, err := os.Stat(abs)
		switch shown := pathname.Escape(dir); {
		case os.IsNotExist(err):
			if near := suggestDirs(abs, filepath.Dir(dir)); len(near) > 0 {
				return toolerr.New(toolerr.NotFound, "the directory %s does not exist; did you mean %s?", shown, strings.Join(near, ", "))
			}
			return toolerr.New(toolerr.NotFound, "the directory %s does not exist: create it, or name another", shown)
		case err == nil && !info.IsDir():
			return toolerr.New(toolerr.NotADirectory, "%s is not a directory: name the directory that holds it", shown)
		}
	}
	return nil
}

// suggestDirs returns the paths of up to three directories in the parent directory of
// a missing one whose names are similar, the most similar first; nil if the parent
// directory cannot be read. shown is the parent directory as the caller wrote it.
func suggestDirs(missing, shown string) []string {
	parent, err := os.Open(filepath.Dir(missing))
	if err != nil {
		return nil
	}
	type near struct {
		path     string
		distance int
	}
	wanted := foldForComparison(filepath.Base(missing))
	limit := min(3, max(1, utf8.RuneCountInString(wanted)/3))
	var all []near
	for _, name := range readNames(parent, maxSuggestScan) {
		d := editdistance.Between(wanted, foldForComparison(name), limit)
		if d > limit {
			continue
		}
		if info, err := os.Stat(filepath.Join(filepath.Dir(missing), name)); err == nil && info.IsDir() {
			all = append(all, near{pathname.Escape(filepath.Join(shown, name)), d})
		}
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.path, b.path))
	})
	var paths []string
	for _, n := range all[:min(len(all), maxSuggestions)] {
		paths = append(paths, n.path)
	}
	return paths
}
