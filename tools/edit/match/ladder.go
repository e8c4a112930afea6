package match

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// Step is a step of the ladder: the differences that are ignored to find
// old_string. Each step also ignores the differences of the steps before it.
type Step int

// The steps, in order.
const (
	Exact       Step = iota
	Endings          // line endings, and a final ending that the file lacks
	Numbers          // pasted line numbers
	Trailing         // trailing white space
	Punctuation      // typographic quotes, dashes, blanks
	Indentation      // indentation that differs in the same way in every line
)

// String returns the step's name for messages.
func (s Step) String() string {
	return [...]string{"exact", "line endings", "pasted line numbers", "trailing whitespace", "Unicode punctuation", "indentation"}[s]
}

// editSearch searches for the places of one edit, step by step.
type editSearch struct {
	file     *splice.File
	checker  *cancelcheck.Checker
	edit     Edit
	all      bool     // places must not overlap, since all of them are replaced
	old, new []string // lines without endings
	// The same lines without pasted line numbers; nil if there are none.
	unnumberedOld, unnumberedNew []string

	tooMany      bool // the last search found more than MaxPlaces
	indentBudget int  // lines whose indentation may still be compared; at 0 the step Indentation finds nothing
}

// maxIndentChecks bounds the lines whose indentation is compared for an edit.
// Without it, a text that occurs everywhere but never fits would take more than
// linear time.
const maxIndentChecks = 1 << 20

// newEditSearch prepares the search for an edit. With all, places must not
// overlap.
func (m *matcher) newEditSearch(e Edit, all bool) *editSearch {
	f := m.file
	s := &editSearch{file: f, checker: m.checker, edit: e, all: all, old: splitLines(e.Old, f.EOL), new: splitLines(e.New, f.EOL), indentBudget: maxIndentChecks}
	if old, newLines, ok := removeLineNumbers(s.old, s.new); ok {
		s.unnumberedOld, s.unnumberedNew = old, newLines
	}
	return s
}

// firstStep returns the step to begin with: Exact, except for a text of several
// lines to be replaced everywhere in a file with mixed line endings. It must
// match with every line ending.
func (s *editSearch) firstStep() Step {
	if s.all && s.file.Ending == textfile.Mixed && len(s.old) > 1 {
		return Endings
	}
	return Exact
}

// findAtStep returns the places found by a step, sorted, and the pattern that
// matches there; nil, nil if nothing is found. The text as sent is tried before
// the text without line numbers.
func (s *editSearch) findAtStep(step Step) (places []place, matching *pattern) {
	for _, p := range s.patternsOf(step) {
		if places := s.findPattern(p, step); len(places) > 0 {
			return places, p
		}
	}
	return nil, nil
}

// findPattern returns the places of a pattern, sorted, and sets tooMany if
// there are more than MaxPlaces. It returns nil if the budget for comparing
// indentation is spent.
func (s *editSearch) findPattern(p *pattern, step Step) []place {
	var found []place
	take := func(where place) bool {
		if where.start == where.end { // only a final ending, which the last line lacks
			return true
		}
		if p.atLineStart && !followsOnlyIndent(s.file, where.start) {
			return true
		}
		if step == Indentation && !s.isUniformlyIndented(p, where) {
			return s.indentBudget > 0
		}
		if n := len(found); n == 0 || found[n-1] != where && (!s.all || where.start >= found[n-1].end) {
			found = append(found, where)
		}
		s.tooMany = len(found) > MaxPlaces
		return !s.tooMany
	}
	switch {
	case step == Exact:
		findExact(s.file, s.edit.Old, !s.all, s.checker, take)
	case len(p.old) == 1 && step == Numbers:
		findExact(s.file, p.old[0], !s.all, s.checker, take)
	default:
		searchPattern(s.file, p, !s.all, s.checker, take)
	}
	if s.indentBudget <= 0 {
		return nil // not all were checked, so uniqueness is unknown
	}
	return found
}

// followsOnlyIndent reports whether only indentation precedes the offset in its line.
func followsOnlyIndent(f *splice.File, at int) bool {
	for at > f.BodyStart && (f.Text[at-1] == ' ' || f.Text[at-1] == '\t') {
		at--
	}
	return at == f.BodyStart || f.Text[at-1] == f.EOL
}

// patternsOf returns the patterns to try for a step, in order: one of the text as
// given, except at Numbers; then, from Numbers on, one of the text without its pasted
// line numbers, if it has some. At Indentation, it omits patterns whose old text ends
// in a line of indentation only, unless the new text ends in the same line. So the
// result may be empty.
func (s *editSearch) patternsOf(step Step) []*pattern {
	var out []*pattern
	if step != Numbers {
		out = append(out, newPattern(s.old, s.new, step))
	}
	if step >= Numbers && s.unnumberedOld != nil {
		p := newPattern(s.unnumberedOld, s.unnumberedNew, step)
		p.atLineStart = s.unnumberedOld[0] != s.old[0]
		out = append(out, p)
	}
	if step == Indentation {
		kept := out[:0]
		for _, p := range out {
			if p = withoutIndentOnlyLine(p); p != nil {
				kept = append(kept, p)
			}
		}
		out = kept
	}
	return out
}

// withoutIndentOnlyLine returns the pattern with its last line emptied if that
// line has only indentation. If the old and the new text end in the same
// indentation, it says nothing about the change and would match only equal
// indentation in the file. It returns nil if only the old text ends in
// indentation.
func withoutIndentOnlyLine(p *pattern) *pattern {
	last := p.old[len(p.old)-1]
	if last == "" || strings.TrimSpace(last) != "" {
		return p
	}
	if len(p.old) == 1 || p.new[len(p.new)-1] != last {
		return nil
	}
	old, newLines := slices.Clone(p.old), slices.Clone(p.new)
	old[len(old)-1], newLines[len(newLines)-1] = "", ""
	short := newPattern(old, newLines, p.step)
	short.atLineStart = p.atLineStart
	return short
}

// isUniformlyIndented reports whether the indentation of all lines at a place
// differs from the pattern's in the same way. It returns false when the budget
// is spent.
func (s *editSearch) isUniformlyIndented(p *pattern, where place) bool {
	if s.checker.Stopped(placeCost) {
		return false
	}
	b := &changeBuilder{file: s.file, pattern: p, where: where}
	b.parts = b.splitPlace(where)
	s.indentBudget -= len(b.parts)
	return s.indentBudget > 0 && b.chooseShift(where, p.old[:len(b.parts)], false)
}
