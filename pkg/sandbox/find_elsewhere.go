package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
)

// Finder visits the entries below root, an absolute path, in a fixed order and up to a
// bound, first those that no ignore file excludes. It calls yield with each entry's
// path relative to root, with slashes, until yield returns false.
type Finder func(f *FS, root string, yield func(path, name string) bool)

// WithNearbySuggestions returns a copy of f whose errors suggest only names of
// the same directory, and search no others. It is for names that no caller
// asked for.
func (f *FS) WithNearbySuggestions() *FS {
	quiet := *f
	quiet.finder = nil
	return &quiet
}

// likelyPath is an existing path that the caller may have meant by a missing one.
type likelyPath struct {
	path     string // as shown to the caller
	distance int    // edit distance of the last name
	shared   int    // number of components before the last one that both paths end in
}

// findElsewhere returns existing paths in any directory of the roots whose last name
// is equal or similar to the missing path's, the most likely first. It leaves out
// secrets. The result is nil without Config.Finder, and for a path with "..".
func (f *FS) findElsewhere(m *missingError) []likelyPath {
	wanted := append(slices.Clone(m.dir), append([]string{m.name}, m.rest...)...)
	for len(wanted) > 0 && wanted[len(wanted)-1] == "." { // from a trailing slash
		wanted = wanted[:len(wanted)-1]
	}
	if f.finder == nil || len(wanted) == 0 || slices.Contains(wanted, "..") {
		return nil
	}
	last := foldForComparison(wanted[len(wanted)-1])
	limit := min(2, utf8.RuneCountInString(last)/4)
	var all []likelyPath
	for _, r := range f.roots[:f.listed] {
		f.finder(f, r.Path, func(path, name string) bool {
			d := editdistance.Between(last, foldForComparison(name), limit)
			if d > limit {
				return true
			}
			abs := filepath.Join(r.Path, filepath.FromSlash(path))
			if f.Denied(abs) {
				return true
			}
			parts := strings.Split(path, "/")
			all = append(all, likelyPath{f.Display(abs), d, sharedSuffixLen(wanted, parts)})
			return len(all) < maxSuggestScan/100
		})
	}
	slices.SortStableFunc(all, func(a, b likelyPath) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.shared, a.shared),
			cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), strings.Compare(a.path, b.path))
	})
	return all
}

// sharedSuffixLen returns the number of components before the last one that a
// and b, both lists of components, end in alike.
func sharedSuffixLen(a, b []string) (n int) {
	for i, j := len(a)-2, len(b)-2; i >= 0 && j >= 0 && a[i] == b[j]; i, j = i-1, j-1 {
		n++
	}
	return n
}
