package sandbox

import (
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

const (
	// maxSuggestions is the number of similar names in an error.
	maxSuggestions    = 3
	maxSuggestedBytes = 60     // bytes of all suggestions, if there are several
	maxSuggestScan    = 20_000 // names of a directory that are compared
	// suggestBatch is the number of names read with one call.
	suggestBatch = 1024
)

// suggestNear returns existing paths that the caller may have meant by a missing one, as
// arguments: those that people regard as the same name, and up to three similar ones.
// It searches only the directory in which the resolution ended, which is in a root, and
// finds nothing if that cannot be opened.
func (f *FS) suggestNear(m *missingError) (same, similar []string) {
	dir, closeDir := f.reopenDir(m.root, m.dir)
	if dir == nil {
		return nil, nil
	}
	defer closeDir()
	type near struct {
		name     string
		distance int
	}
	var best []near
	wanted := foldForComparison(m.name)
	limit := min(3, max(1, utf8.RuneCountInString(wanted)/3))
	for _, name := range dir.readNames(maxSuggestScan) {
		d := editdistance.Between(wanted, foldForComparison(name), limit)
		if d > limit || f.Denied(joinPath(m.root.Path, append(slices.Clip(m.dir), name))) {
			continue
		}
		best = append(best, near{name, d})
	}
	slices.SortFunc(best, func(a, b near) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	})
	for _, n := range best[:min(len(best), maxSuggestions)] {
		if n.distance == 0 {
			same = append(same, f.correctedPath(m, n.name))
		} else {
			similar = append(similar, f.correctedPath(m, n.name))
		}
	}
	return same, similar
}

// correctedPath returns the whole path with the corrected component if that exists, else
// the path up to that component.
func (f *FS) correctedPath(m *missingError, name string) string {
	path := joinPath(m.root.Path, append(slices.Clip(m.dir), name))
	if len(m.rest) > 0 && !slices.Contains(m.rest, "..") {
		full := joinPath(path, m.rest)
		if o, err := f.resolveWithRetry(full, forMetadata); err == nil {
			o.close()
			return f.Display(full)
		}
	}
	return f.Display(path)
}

// reopenDir opens a directory in root by its resolved components. The caller calls
// release to close it. Both are nil if there is no such directory any more.
func (f *FS) reopenDir(root *openRoot, real []string) (dir object, release func()) {
	w := &walker{fs: f, root: root, here: root.object, pending: real}
	o, err := w.walk()
	if err != nil {
		w.closeObjects()
		return nil, nil
	}
	if !o.stat().Mode.IsDir() {
		o.close()
		return nil, nil
	}
	return o.object, o.close
}

// foldForComparison returns an equal text for names that people regard as equal:
// composed and decomposed letters, upper and lower case, and all kinds of spaces.
func foldForComparison(name string) string {
	if pathname.IsASCII(name) && pathname.Escape(name) == name {
		return strings.ToLower(name)
	}
	name = norm.NFC.String(name)
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) {
			return ' '
		}
		if r == '\u2019' || r == '\u2018' {
			return '\''
		}
		if pathname.IsHidden(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// readNames returns up to limit names of an open directory, fewer after an error, and
// closes it.
func readNames(f *os.File, limit int) []string {
	defer f.Close()
	var names []string
	for len(names) < limit {
		batch, err := f.Readdirnames(min(suggestBatch, limit-len(names)))
		names = append(names, batch...)
		if err != nil {
			break
		}
	}
	return names
}
