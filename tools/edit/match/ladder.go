package match

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// attempt searches for one edit, step by step.
type editSearch struct {
	file     *splice.File
	checker  *cancelcheck.Checker
	edit     Edit
	all      bool
	old, new []string // lines
	// the same without pasted line numbers; nil if there are none
	unnumberedOld, unnumberedNew []string

	tooMany      bool // more than MaxPlaces were found
	indentBudget int  // lines whose indentation may still be compared
}

// maxIndented bounds the lines whose indentation is compared, so that a text
// that occurs everywhere but never fits costs no more than a pass.
const maxIndentChecks = 1 << 20

func (m *matcher) newEditSearch(e Edit, all bool) *editSearch {
	f := m.file
	a := &editSearch{file: f, checker: m.checker, edit: e, all: all, old: splitLines(e.Old, f.EOL), new: splitLines(e.New, f.EOL), indentBudget: maxIndentChecks}
	if old, newLines, ok := removeLineNumbers(a.old, a.new); ok {
		a.unnumberedOld, a.unnumberedNew = old, newLines
	}
	return a
}

// firstStep returns the step to begin with. In a file with mixed line endings,
// a text of several lines to be replaced everywhere must match with every
// ending.
func (a *editSearch) firstStep() Step {
	if a.all && a.file.Ending == textfile.Mixed && len(a.old) > 1 {
		return Endings
	}
	return Exact
}

// try returns the places found by a step, sorted, and the pattern that found
// them. The text as sent precedes the one without line numbers.
func (a *editSearch) findAtStep(step Step) ([]place, *pattern) {
	for _, p := range a.patternsOf(step) {
		if places := a.findPattern(p, step); len(places) > 0 {
			return places, p
		}
	}
	return nil, nil
}

// look returns the places of a pattern.
func (a *editSearch) findPattern(p *pattern, step Step) []place {
	var found []place
	take := func(where place) bool {
		if where.start == where.end { // only a final ending, which the last line lacks
			return true
		}
		if p.atLineStart && !isLineStart(a.file, where.start) {
			return true
		}
		if step == Indentation && !a.uniformlyIndented(p, where) {
			return a.indentBudget > 0
		}
		if n := len(found); n == 0 || found[n-1] != where && (!a.all || where.start >= found[n-1].end) {
			found = append(found, where)
		}
		a.tooMany = len(found) > MaxPlaces
		return !a.tooMany
	}
	switch {
	case step == Exact:
		findExact(a.file, a.edit.Old, !a.all, a.checker, take)
	case len(p.old) == 1 && step == Numbers:
		findExact(a.file, p.old[0], !a.all, a.checker, take)
	default:
		searchPattern(a.file, p, !a.all, a.checker, take)
	}
	if a.indentBudget <= 0 {
		return nil // not all were checked, so uniqueness is unknown
	}
	return found
}

// headsLine reports whether only indentation precedes a position in its line.
func isLineStart(f *splice.File, at int) bool {
	for at > f.BodyStart && (f.Text[at-1] == ' ' || f.Text[at-1] == '\t') {
		at--
	}
	return at == f.BodyStart || f.Text[at-1] == f.EOL
}

// patterns returns the patterns of a step.
func (a *editSearch) patternsOf(step Step) []*pattern {
	var out []*pattern
	if step != Numbers {
		out = append(out, newPattern(a.old, a.new, step))
	}
	if step >= Numbers && a.unnumberedOld != nil {
		p := newPattern(a.unnumberedOld, a.unnumberedNew, step)
		p.atLineStart = a.unnumberedOld[0] != a.old[0]
		out = append(out, p)
	}
	if step == Indentation {
		kept := out[:0]
		for _, p := range out {
			if p = withoutIndentLine(p); p != nil {
				kept = append(kept, p)
			}
		}
		out = kept
	}
	return out
}

// closed returns the pattern without a last line of mere indentation. If both
// texts end in the same indentation, it says nothing about the change and would
// match only with equal indentation in the file. It returns nil if only the old
// text ends so.
func withoutIndentLine(p *pattern) *pattern {
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

// uniform reports whether all lines of a place differ in indentation in the
// same way.
func (a *editSearch) uniformlyIndented(p *pattern, where place) bool {
	if a.checker.Stopped(placeCost) {
		return false
	}
	b := &changeBuilder{file: a.file, pattern: p, where: where}
	b.parts = b.splitPlace(where)
	a.indentBudget -= len(b.parts)
	return a.indentBudget > 0 && b.chooseShift(where, p.old[:len(b.parts)], false)
}

// Step is a rung of the ladder: the differences that are ignored to find
// old_string. Each step also ignores those of the steps before it.
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
