package textdiff

import (
	"time"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// diffExact returns the runs that go-diff finds, and adds the work to s.work.
// It does not use go-diff's semantic clean-up, which joins differences across
// equal lines.
func (s *aligner) diffExact(a, b []rune) []Run {
	if s.checkLimits() {
		return nil
	}
	library := diffmatchpatch.New()
	library.DiffTimeout = max(time.Until(s.deadline), time.Nanosecond)
	var runs []Run
	i, j, different := 0, 0, 0
	for _, d := range library.DiffMainRunes(a, b, false) {
		n := utf8.RuneCountInString(d.Text)
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			i, different = i+n, different+n
		case diffmatchpatch.DiffInsert:
			j, different = j+n, different+n
		case diffmatchpatch.DiffEqual:
			runs = append(runs, Run{i, j, n})
			i, j = i+n, j+n
		}
	}
	s.work += len(a) + len(b) + different*different
	return runs
}
