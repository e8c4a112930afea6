package writeguard

import (
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// relate finds out how the roots overlap, by their paths and by the
// directories that these lead to. It returns false if they do not.
func (n *neighbour) relate(root string) bool {
	if !filepath.IsAbs(n.root) {
		return false
	}
	if rel, ok := relateTo(n.root, root); ok {
		n.above, n.rel = true, rel
		return true
	}
	if rel, ok := relateTo(root, n.root); ok {
		n.rel = rel
		return true
	}
	return false
}

// relateTo returns the path of lower relative to upper. ok is false if lower
// is not in upper.
func relateTo(upper, lower string) (rel string, ok bool) {
	if supervise.Beneath(upper, lower) {
		rel, err := filepath.Rel(upper, lower)
		return rel, err == nil
	}
	info, err := os.Stat(upper)
	if err != nil {
		return "", false
	}
	for _, path := range append([]string{lower}, otherPaths(lower)...) {
		for dir := path; ; dir = filepath.Dir(dir) {
			if now, err := os.Stat(dir); err == nil && os.SameFile(now, info) {
				rel, err := filepath.Rel(dir, path)
				return rel, err == nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", false
}

// toTheirs converts a name in our root to a name in the neighbour's root.
// inside is false if the file is not in that root.
func (n *neighbour) toTheirs(name string) (theirs string, inside bool) {
	if n.above {
		return filepath.Join(n.rel, name), true
	}
	return strip(n.rel, name)
}

// toOurs is the inverse of toTheirs.
func (n *neighbour) toOurs(theirs string) (name string, inside bool) {
	if n.above {
		return strip(n.rel, theirs)
	}
	return filepath.Join(n.rel, theirs), true
}

// strip returns name relative to dir. inside is false if name is not in dir.
func strip(dir, name string) (rest string, inside bool) {
	if !within(dir, name) {
		return "", false
	}
	rest, err := filepath.Rel(dir, name)
	return rest, err == nil
}
