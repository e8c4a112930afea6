package writeguard

import (
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// setOverlap sets isUpper and lowerInUpper for the root at a path. It compares
// the paths and the directories that they lead to. It returns false if the
// roots do not overlap.
func (n *overlappingRoot) setOverlap(root string) bool {
	if !filepath.IsAbs(n.root) {
		return false
	}
	if rel, ok := pathBelow(n.root, root); ok {
		n.isUpper, n.lowerInUpper = true, rel
		return true
	}
	if rel, ok := pathBelow(root, n.root); ok {
		n.lowerInUpper = rel
		return true
	}
	return false
}

// pathBelow returns the path of lower relative to upper. ok is false if lower
// is not upper or below it. Both are absolute.
func pathBelow(upper, lower string) (rel string, ok bool) {
	if supervise.IsBeneath(upper, lower) {
		rel, err := filepath.Rel(upper, lower)
		return rel, err == nil
	}
	info, err := os.Stat(upper)
	if err != nil {
		return "", false
	}
	for _, path := range append([]string{lower}, pathsThroughMounts(lower)...) {
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

// toTheirName converts a name in our root to a name in the other root. inside
// is false if the file is not in that root.
func (n *overlappingRoot) toTheirName(name string) (theirs string, inside bool) {
	if n.isUpper {
		return filepath.Join(n.lowerInUpper, name), true
	}
	return nameBelow(n.lowerInUpper, name)
}

// toOurName converts a name in the other root to a name in ours. inside is
// false if the file is not in our root.
func (n *overlappingRoot) toOurName(theirs string) (name string, inside bool) {
	if n.isUpper {
		return nameBelow(n.lowerInUpper, theirs)
	}
	return filepath.Join(n.lowerInUpper, theirs), true
}

// nameBelow returns name relative to dir, "." for dir itself. inside is false, and rest
// "", if name is neither dir nor below it.
func nameBelow(dir, name string) (rest string, inside bool) {
	if !isAtOrBelow(dir, name) {
		return "", false
	}
	rest, err := filepath.Rel(dir, name)
	return rest, err == nil
}
