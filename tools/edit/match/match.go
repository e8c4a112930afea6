// Package match finds the place in a file that a model means by remembered
// text, and computes the change there.
//
//	f, err := splice.Open(ctx, raw)                          // BINARY_FILE
//	plan, err := match.Find(ctx, f, edits, match.Options{})  // NO_MATCH, NOT_UNIQUE, NO_CHANGE …
//	err = match.Fresh(ctx, f, plan.Places, etag, seen)       // STALE
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
// way, unless it has the file's indentation already (indent_verbatim.go). Where it
// repeats the old text, the file's bytes are kept: line endings, trailing
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

// MaxPlaces bounds the places that one edit replaces.
const MaxPlaces = 1 << 20

// perPlace is the cost of work at a place, in bytes scanned.
const placeCost = 256

// Edit is a text to replace.
type Edit struct {
	Old, New string
	All      bool // replace every place
	Expected int  // required number of places; 0: one, or with All any number
}

// Options configure the search.
type Options struct {
	Name    string // of the file, for messages
	Strict  bool   // no step after Endings
	Changed bool   // the file differs from the version that the model saw, which errors mention as a possible cause
}

// Plan holds the changes of edits that were all found.
type Plan struct {
	Found    []Found           // for each edit
	Places   []Place           // all of them, sorted
	Changes  []textdiff.Change // to the file's text, sorted
	Warnings []string
}

// Found describes how an edit was matched.
type Found struct {
	Step       Step
	FirstLines []int // first lines of its places, at most maxListed
	Count      int   // number of places

	// AsGiven reports that in at least one place the new text, unlike the
	// old, already had the file's indentation.
	NotShifted bool
}

// Place is a range of the file's text that an edit replaces.
type Place struct {
	Start, End int
	Edit       int // index
}

// Find finds every edit in the unchanged file, or returns an error that tells
// why each one failed. Overlapping edits are CONFLICT. When ctx ends, the
// search ends with its cause.
func Find(ctx context.Context, f *splice.File, edits []Edit, o Options) (*Plan, error) {
	m := &matcher{file: f, edits: edits, options: o, checker: cancelcheck.New(ctx)}
	plan, err := m.findAll()
	if over := m.checker.Err(); over != nil {
		return nil, over // an interrupted search proves nothing
	}
	return plan, err
}

// plan searches for all edits.
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

// inOrder returns the changes of all edits in the order of their places. If one
// place ends where another begins, offsets alone do not order two insertions.
func changesInPlaceOrder(places []Place, changes [][]textdiff.Change) []textdiff.Change {
	total := 0
	for _, list := range changes {
		total += len(list)
	}
	all := make([]textdiff.Change, 0, total)
	for _, p := range places {
		list := changes[p.Edit]
		for len(list) > 0 && list[0].End <= p.End {
			all, list = append(all, list[0]), list[1:]
		}
		changes[p.Edit] = list
	}
	return all
}

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
	revertedSearches int // number of searches with another edit of the call reverted
}

// hit is an edit that was found.
type foundEdit struct {
	step       Step
	places     []place
	changes    []textdiff.Change
	warnings   []string
	notShifted bool
}

func (h *foundEdit) summary(f *splice.File) Found {
	number := f.LineNumberer()
	out := Found{Step: h.step, Count: len(h.places), NotShifted: h.notShifted}
	for _, p := range h.places[:min(len(h.places), maxListedPlaces)] {
		out.FirstLines = append(out.FirstLines, number(p.start))
	}
	return out
}

// find tries the steps of the ladder in order.
func (m *matcher) findEdit(index int, e Edit) (*foundEdit, *toolerr.Error) {
	if err := m.validate(e); err != nil {
		return nil, err
	}
	all := e.All || e.Expected > 1
	a := m.newEditSearch(e, all)
	for step := a.firstStep(); step <= m.lastStep(); step++ {
		places, p := a.findAtStep(step)
		if len(places) == 0 {
			continue
		}
		if a.tooMany && all {
			return nil, toolerr.New(toolerr.LimitReached, "old_string matches %s in more than %d places: use a command such as sed", m.options.displayName(), MaxPlaces)
		}
		if a.tooMany {
			return nil, m.tooManyPlacesError(places, step)
		}
		if err := m.checkCount(e, all, places, step); err != nil {
			return nil, err
		}
		return m.buildChanges(e, p, step, places)
	}
	return nil, m.noMatchError(index, e, a)
}

func (m *matcher) lastStep() Step {
	if m.options.Strict {
		return Endings
	}
	return Indentation
}

// check refuses edits that are wrong for any file.
func (m *matcher) validate(e Edit) *toolerr.Error {
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

// counted checks the number of places.
func (m *matcher) checkCount(e Edit, all bool, places []place, step Step) *toolerr.Error {
	switch {
	case e.Expected > 0 && len(places) != e.Expected:
		return m.wrongCountError(e, places, step)
	case !all && len(places) > 1:
		return m.notUniqueError(places, step)
	}
	return nil
}

// hit computes the changes at the places found.
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
