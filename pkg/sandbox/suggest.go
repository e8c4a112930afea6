package sandbox

import (
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxSuggestions = 3
	maxSuggested   = 60     // bytes of them, if there are several
	maxSuggestScan = 20_000 // names of a directory that are compared
	suggestBatch   = 1024
)

// suggest returns existing names, as they may be given back, that the missing
// one was probably meant to be: those that people take for the same, and up
// to three that are near. It looks only into the directory where the search
// ended, which is inside a root.
func (f *FS) suggest(m *missing) (same, beside []string) {
	dir, closeDir := f.reopen(m.root, m.dir)
	if dir == nil {
		return nil, nil
	}
	defer closeDir()
	type near struct {
		name     string
		distance int
	}
	var best []near
	wanted := canonical(m.name)
	limit := min(3, max(1, utf8.RuneCountInString(wanted)/3))
	for _, name := range dir.names(maxSuggestScan) {
		d := distance(wanted, canonical(name), limit)
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
			same = append(same, f.suggestion(m, n.name))
		} else {
			beside = append(beside, f.suggestion(m, n.name))
		}
	}
	return same, beside
}

// suggestion is the whole path if the rest exists too, else as far as the
// corrected component.
func (f *FS) suggestion(m *missing, name string) string {
	path := joinPath(m.root.Path, append(slices.Clip(m.dir), name))
	if len(m.rest) > 0 && !slices.Contains(m.rest, "..") {
		full := joinPath(path, m.rest)
		if o, err := f.lookup(full, toLook); err == nil {
			o.close()
			return f.Display(full)
		}
	}
	return f.Display(path)
}

// reopen finds a directory beneath root again by its real components.
func (f *FS) reopen(root *openRoot, real []string) (object, func()) {
	w := &walker{fs: f, root: root, here: root.object, pending: real}
	o, err := w.walk()
	if err != nil {
		w.leave()
		return nil, nil
	}
	if !o.stat().Mode.IsDir() {
		o.close()
		return nil, nil
	}
	return o.object, o.close
}

// canonical makes names equal that people take for equal: composed and
// decomposed letters, upper and lower case, the kinds of space.
func canonical(name string) string {
	if plainName(name) && ascii(name) {
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
		if hidden(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// distance is the number of letters to insert, delete, change or swap with
// the next one to make a into b, or limit+1 when that is more than limit. Only
// a band of the table, limit cells to each side, is computed, so a directory
// full of long names costs no more than one of short ones.
func distance(a, b string, limit int) int {
	if a == b {
		return 0
	}
	x, y := apart([]rune(a), []rune(b))
	if abs(len(x)-len(y)) > limit {
		return limit + 1
	}
	far := limit + 1
	before, last, row := make([]int, len(y)+2), make([]int, len(y)+2), make([]int, len(y)+2)
	for j := range last {
		last[j] = min(j, far)
	}
	for i := 1; i <= len(x); i++ {
		from, to := max(1, i-limit), min(len(y), i+limit)
		row[from-1] = far
		if from == 1 {
			row[0] = min(i, far)
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost, far)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		row[to+1] = far
		if least > limit {
			return far
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// apart drops what two names begin and end with alike.
func apart(x, y []rune) ([]rune, []rune) {
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return x, y
}

func abs(n int) int { return max(n, -n) }

// readNames returns up to limit names from an open directory and closes it.
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
