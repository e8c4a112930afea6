// Package match finds the place in a file that a model means by remembered
// text, and computes the change there.
//
//	f, err := splice.Open(ctx, raw)                          // BINARY_FILE
//	plan, err := match.Find(ctx, f, edits, o)                // NO_MATCH, NOT_UNIQUE, NO_CHANGE …
//	err = match.CheckStale(ctx, f, plan.Places, version, o)  // STALE
//	result, err := f.Apply(ctx, plan.Changes)                // BAD_ENCODING
//	warnings := plan.Warnings                                // and internal/contentcheck's
//
// Everything happens in memory on one version of the file, which is not
// changed. Errors are written for the model: they show the file's text and what
// to send instead.
//
// # The ladder
//
// Each edit is searched step by step (Step), and the first step that finds it
// decides. A single place is used; several are NOT_UNIQUE, whatever a later
// step might find. A step ignores white space, line numbers or punctuation, but
// never a letter: similar text never matches. New text is adapted in the same
// way, unless it has the file's indentation already (indent_verbatim.go). Where
// it repeats the old text, the file's bytes are kept: line endings, trailing
// blanks, quotes.
//
// # Answers
//
// NOT_UNIQUE lists the places with the line before or after each. NO_MATCH
// tells if the edit seems to be applied already and in which other form the
// text would be found (for example if it was escaped twice), and shows the
// nearest lines unchanged, with the first difference that the ladder does not
// ignore. One error has the messages of all failed edits.
//
// # Costs
//
// Time is linear in file and edits, whatever their content. In addition to the
// file, memory holds only the places found, up to MaxPlaces; UTF-8 is not
// copied. Every pass ends soon after the context does.
package match

import (
	"cmp"
	"context"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// MaxPlaces bounds the places that one edit may have.
const MaxPlaces = 1 << 20

// placeCost is the cost of work at a place, in bytes scanned.
const placeCost = 256

// Edit is a text to replace, Old, and its replacement, New.
type Edit struct {
	Old, New string
	All      bool // replace every place instead of requiring a single one
	Expected int  // required number of places; 0: one, or any number with All
}

// Options configure the search.
type Options struct {
	Name    string // the file's name for messages; "": "the file"
	Strict  bool   // use only the steps Exact and Endings, and insert new text as it is
	Changed bool   // the file differs from the version that the model saw, which errors mention as a possible cause
}

// Plan has the places and the changes of edits that were all found.
type Plan struct {
	Found    []Found           // one for each edit, in their order
	Places   []Place           // those of all edits, sorted by Start
	Changes  []textdiff.Change // to the file's text, sorted; they do not overlap
	Warnings []string          // about changes that are probably not intended
}

// Found describes how an edit was matched.
type Found struct {
	Step        Step
	LineNumbers []int // line number, from 1, of the start of each place; at most maxListedPlaces
	Count       int   // number of places

	// NotShifted reports that the new text, unlike the old text, already
	// had the file's indentation in at least one place, and was inserted
	// unchanged there.
	NotShifted bool
}

// Place is a range of the file's text that an edit replaces.
type Place struct {
	Start, End int
	Edit       int // index of the edit
}

// Find finds every edit in the unchanged file, and computes the changes. If
// edits fail, it returns one *toolerr.Error with the reason for each: NO_MATCH,
// NOT_UNIQUE, NO_CHANGE, INVALID_PARAMS or LIMIT_REACHED. It returns CONFLICT
// for edits that overlap, and the cause if ctx ends.
func Find(ctx context.Context, f *splice.File, edits []Edit, o Options) (*Plan, error) {
	m := &matcher{file: f, edits: edits, options: o, checker: cancelcheck.New(ctx)}
	plan, err := m.findAll()
	if over := m.checker.Err(); over != nil {
		return nil, over // an interrupted search proves nothing
	}
	return plan, err
}

// findAll returns the results of Find. They are invalid if checker has stopped.
func (m *matcher) findAll() (*Plan, error) {
	f, edits, o := m.file, m.edits, m.options
	var failures []failure
	plan := &Plan{}
	changes := make([][]textdiff.Change, len(edits))
	for i, e := range edits {
		if m.checker.Stopped(0) {
			break
		}
		hit, err := m.findEdit(i, e)
		if err != nil {
			failures = append(failures, failure{i, err})
			continue
		}
		plan.Found = append(plan.Found, hit.summary(f))
		plan.Places = slices.Grow(plan.Places, len(hit.places))
		for _, p := range hit.places {
			plan.Places = append(plan.Places, Place{p.start, p.end, i})
		}
		changes[i] = hit.changes
		plan.Warnings = append(plan.Warnings, hit.warnings...)
	}
	if len(failures) > 0 {
		return nil, joinFailures(failures, len(edits), o)
	}
	if len(edits) == 1 {
		plan.Changes = changes[0]
		return plan, nil
	}
	slices.SortStableFunc(plan.Places, func(a, b Place) int { return cmp.Compare(a.Start, b.Start) })
	if err := checkOverlap(f, plan.Places); err != nil {
		return nil, err
	}
	plan.Changes = changesInPlaceOrder(plan.Places, changes)
	return plan, nil
}

// changesInPlaceOrder merges the changes of all edits, which byEdit has by the
// edit's index, in the order of the places. Where one place ends and another
// begins, offsets alone do not order two insertions.
func changesInPlaceOrder(places []Place, byEdit [][]textdiff.Change) []textdiff.Change {
	total := 0
	for _, list := range byEdit {
		total += len(list)
	}
	all := make([]textdiff.Change, 0, total)
	for _, p := range places {
		list := byEdit[p.Edit]
		for len(list) > 0 && list[0].End <= p.End {
			all, list = append(all, list[0]), list[1:]
		}
		byEdit[p.Edit] = list
	}
	return all
}

// displayName returns the file's name for messages, or "the file" without a
// name.
func (o Options) displayName() string {
	if o.Name == "" {
		return "the file"
	}
	return o.Name
}

// matcher searches for the edits of one call.
type matcher struct {
	file             *splice.File
	edits            []Edit
	options          Options
	checker          *cancelcheck.Checker
	revertedSearches int // number of searches so far for a text before another edit of the call
}

// foundEdit is an edit that was found, with its changes.
type foundEdit struct {
	step       Step
	places     []place
	changes    []textdiff.Change
	warnings   []string
	notShifted bool
}

// summary returns the description of the edit for a Plan.
func (h *foundEdit) summary(f *splice.File) Found {
	number := f.LineNumberer()
	out := Found{Step: h.step, Count: len(h.places), NotShifted: h.notShifted}
	for _, p := range h.places[:min(len(h.places), maxListedPlaces)] {
		out.LineNumbers = append(out.LineNumbers, number(p.start))
	}
	return out
}

// findEdit searches for an edit by the steps of the ladder in order, and computes its
// changes. index is the edit's position in the call. The error says why the edit fails.
// Exactly one of the results is nil.
func (m *matcher) findEdit(index int, e Edit) (*foundEdit, *toolerr.Error) {
	if err := m.validateEdit(e); err != nil {
		return nil, err
	}
	all := e.All || e.Expected > 1
	search := m.newEditSearch(e, all)
	for step := search.firstStep(); step <= m.lastStep(); step++ {
		places, p := search.findAtStep(step)
		if len(places) == 0 {
			continue
		}
		if search.tooMany && all {
			return nil, toolerr.New(toolerr.LimitReached, "old_string matches %s in more than %d places: use a command such as sed", m.options.displayName(), MaxPlaces)
		}
		if search.tooMany {
			return nil, m.tooManyPlacesError(places, step)
		}
		if err := m.checkCount(e, all, places, step); err != nil {
			return nil, err
		}
		return m.buildChanges(e, p, step, places)
	}
	return nil, m.noMatchError(index, e, search)
}

// lastStep returns the last step of the ladder that the options allow.
func (m *matcher) lastStep() Step {
	if m.options.Strict {
		return Endings
	}
	return Indentation
}

// validateEdit returns INVALID_PARAMS or NO_CHANGE for an edit that cannot succeed in any
// file. It returns nil for any other edit.
func (m *matcher) validateEdit(e Edit) *toolerr.Error {
	switch {
	case e.Old == "":
		return toolerr.New(toolerr.InvalidParams, "old_string is empty, but %s is not. To insert, set old_string to an existing line and new_string to that line with the new ones.", m.options.displayName())
	case e.Old == e.New:
		return toolerr.New(toolerr.NoChange, "no changes to make: old_string and new_string are the same")
	case e.Expected < 0:
		return toolerr.New(toolerr.InvalidParams, "expected_replacements is %d: give the number of matches, or leave it out", e.Expected)
	}
	return nil
}

// checkCount returns NOT_UNIQUE if the edit expects another number of places, nil
// otherwise. all means that any number is right, unless the edit gives it.
func (m *matcher) checkCount(e Edit, all bool, places []place, step Step) *toolerr.Error {
	switch {
	case e.Expected > 0 && len(places) != e.Expected:
		return m.wrongCountError(e, places, step)
	case !all && len(places) > 1:
		return m.notUniqueError(places, step)
	}
	return nil
}

// buildChanges computes the changes at the places that p has matched. It
// extends places in their slice over white space at the end of a line that the
// old text lacks. It returns NO_CHANGE if the places already have the new text,
// and NO_MATCH if the new text cannot be indented like the file.
func (m *matcher) buildChanges(e Edit, p *pattern, step Step, places []place) (*foundEdit, *toolerr.Error) {
	h := &foundEdit{step: step, places: places, changes: make([]textdiff.Change, 0, len(places))}
	b := newBuilder(m.file, p, func() bool { return m.checker.Err() != nil })
	b.strict = m.options.Strict
	for i, where := range places {
		if m.checker.Stopped(placeCost) {
			break
		}
		if step >= Trailing && !isBlank(p.old[len(p.old)-1]) && (i == len(places)-1 || where.end < places[i+1].start) {
			where.end = m.file.SkipFinalBlanks(where.end)
			places[i] = where
		}
		var failed string
		if h.changes, failed = b.appendChanges(where, h.changes); failed != "" {
			return nil, m.notShiftableError(where, failed)
		}
	}
	h.notShifted = b.anyNotShifted
	if len(h.changes) == 0 {
		return nil, m.noChangeError(e, step, places)
	}
	if len(places) == 1 {
		h.warnings = m.doubledTextWarning(e, places[0])
	}
	return h, nil
}
