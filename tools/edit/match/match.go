// Package match finds the one place in a file that a model means by a text it
// remembers, and works out what has to change there.
//
//	f, err := splice.Open(ctx, raw)                          // BINARY_FILE
//	plan, err := match.Find(ctx, f, edits, match.Options{})  // NO_MATCH, NOT_UNIQUE, NO_CHANGE …
//	err = match.Fresh(ctx, f, plan.Places, etag, seen)       // STALE
//	result, err := f.Apply(ctx, plan.Changes)                // BAD_ENCODING
//	warnings := plan.Warnings                                // and pkg/lint's
//
// All is done in memory on one version of the file, and nothing is changed by
// any of it. Errors are ready for the model: they say what stands in the file
// and what to send instead.
//
// # The ladder
//
// Each edit is looked for step by step (Step), and the first step that finds
// it counts. One place is taken; several are NOT_UNIQUE, whatever a later step
// might find. A step overlooks white space, line numbers, punctuation, never
// a letter: nothing is found because it is similar. New text is made to fit
// what was found in the same way, unless it has the file's indentation
// already (given.go). Where it repeats the old text the file's bytes stay:
// its line endings, blanks at ends of lines, quotes.
//
// # Answers
//
// NOT_UNIQUE lists the places with the line before or after each. NO_MATCH
// says if the edit seems made already, how else the text would be found (as
// one that was escaped once too often), and shows the nearest lines as they
// are, with the first difference that the ladder does not overlook. The
// messages of several failed edits come in one error.
//
// # Costs
//
// Time is linear in file and edits, whatever they hold; beside the file only
// the places found are held, up to MaxPlaces, and of UTF-8 nothing is copied.
// Every pass ends soon after the context does.
package match

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/pace"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// MaxPlaces bounds the places that one edit replaces.
const MaxPlaces = 1 << 20

// perPlace is how many bytes looked at are worth the work at a place.
const perPlace = 256

// Edit is a text to be replaced.
type Edit struct {
	Old, New string
	All      bool // every place
	Expected int  // how many places there have to be; 0: one, or with All any number
}

// Options steer the search.
type Options struct {
	Name    string // of the file, for messages
	Strict  bool   // no step after Endings
	Changed bool   // the file is not the version that the model saw: said where that may be why
}

// Plan is what to change, once every edit has been found.
type Plan struct {
	Found    []Found           // for each edit
	Places   []Place           // all of them, sorted
	Changes  []textdiff.Change // to the file's text, sorted
	Warnings []string
}

// Found tells how an edit was found.
type Found struct {
	Step  Step
	Lines []int // where its places begin; of many the first maxListed
	Count int   // places

	// AsGiven says that the new text had the file's indentation already, at
	// some place at least, where the old text had not.
	AsGiven bool
}

// Place is a range of the file's text that an edit replaces.
type Place struct {
	Start, End int
	Edit       int // index
}

// Find finds every edit in the file as it is, or says of each one that cannot
// be found why not. Edits that overlap are CONFLICT. Once ctx is over, so is
// the search, with its cause.
func Find(ctx context.Context, f *splice.File, edits []Edit, o Options) (*Plan, error) {
	m := &matcher{f: f, edits: edits, o: o, pace: pace.Of(ctx)}
	plan, err := m.plan()
	if over := m.pace.Err(); over != nil {
		return nil, over // what was found, or not, says nothing
	}
	return plan, err
}

// plan looks for all edits.
func (m *matcher) plan() (*Plan, error) {
	f, edits, o := m.f, m.edits, m.o
	var failures []failure
	plan := &Plan{}
	changes := make([][]textdiff.Change, len(edits))
	for i, e := range edits {
		if m.pace.Over(0) {
			break
		}
		hit, err := m.find(i, e)
		if err != nil {
			failures = append(failures, failure{i, err})
			continue
		}
		plan.Found = append(plan.Found, hit.found(f))
		plan.Places = slices.Grow(plan.Places, len(hit.places))
		for _, p := range hit.places {
			plan.Places = append(plan.Places, Place{p.start, p.end, i})
		}
		changes[i] = hit.changes
		plan.Warnings = append(plan.Warnings, hit.warnings...)
	}
	if len(failures) > 0 {
		return nil, joined(failures, len(edits), o)
	}
	if len(edits) == 1 {
		plan.Changes = changes[0]
		return plan, nil
	}
	slices.SortStableFunc(plan.Places, func(a, b Place) int { return cmp.Compare(a.Start, b.Start) })
	if err := overlapping(f, plan.Places); err != nil {
		return nil, err
	}
	plan.Changes = inOrder(plan.Places, changes)
	return plan, nil
}

// inOrder returns the changes of all edits in the order of the places they are
// in. Where one place ends and another begins, offsets alone do not tell which
// of two insertions comes first.
func inOrder(places []Place, changes [][]textdiff.Change) []textdiff.Change {
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

// overlapping refuses edits that share text: their order would decide.
func overlapping(f *splice.File, places []Place) error {
	number := f.Numbers()
	for i := 1; i < len(places); i++ {
		a, b := places[i-1], places[i]
		if b.Start < a.End {
			first, last := min(a.Edit, b.Edit)+1, max(a.Edit, b.Edit)+1
			return toolerr.New(toolerr.Conflict, "edits %d and %d overlap at line %d; nothing was changed. Merge them into one edit.", first, last, number(b.Start))
		}
	}
	return nil
}

type failure struct {
	edit int
	err  *toolerr.Error
}

// joined makes one error of all that failed.
func joined(failures []failure, edits int, o Options) error {
	if edits == 1 {
		return failures[0].err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d edits failed in %s; nothing was changed.\n", len(failures), edits, o.name())
	codes := make([]string, len(failures))
	for i, f := range failures {
		if i < maxFailures {
			fmt.Fprintf(&text, "\nedit %d: %s\n", f.edit+1, f.err.Error())
		}
		codes[i] = fmt.Sprintf("%d %s", f.edit+1, f.err.Code())
	}
	if len(failures) > maxFailures {
		fmt.Fprintf(&text, "\n… and %d more.\n", len(failures)-maxFailures)
		codes = codes[:maxFailures]
	}
	return toolerr.New(failures[0].err.Code(), "%s", strings.TrimRight(text.String(), "\n")).With("failed", codes)
}

// maxFailures bounds the edits that a report goes into.
const maxFailures = 20

func (o Options) name() string {
	if o.Name == "" {
		return "the file"
	}
	return o.Name
}

// matcher looks for the edits of one call.
type matcher struct {
	f     *splice.File
	edits []Edit
	o     Options
	pace  *pace.Pace
	tried int // how often text was looked for with another edit of the call unmade
}

// hit is an edit that was found.
type hit struct {
	step     Step
	places   []place
	changes  []textdiff.Change
	warnings []string
	asGiven  bool
}

func (h *hit) found(f *splice.File) Found {
	number := f.Numbers()
	out := Found{Step: h.step, Count: len(h.places), AsGiven: h.asGiven}
	for _, p := range h.places[:min(len(h.places), maxListed)] {
		out.Lines = append(out.Lines, number(p.start))
	}
	return out
}

// find goes up the ladder.
func (m *matcher) find(index int, e Edit) (*hit, *toolerr.Error) {
	if err := m.check(e); err != nil {
		return nil, err
	}
	all := e.All || e.Expected > 1
	a := m.attempt(e, all)
	for step := a.firstStep(); step <= m.lastStep(); step++ {
		places, p := a.try(step)
		if len(places) == 0 {
			continue
		}
		if a.over && all {
			return nil, toolerr.New(toolerr.LimitReached, "old_string matches %s in more than %d places: use a command such as sed", m.o.name(), MaxPlaces)
		}
		if a.over {
			return nil, m.everywhere(places, step)
		}
		if err := m.counted(e, all, places, step); err != nil {
			return nil, err
		}
		return m.hit(e, p, step, places)
	}
	return nil, m.noMatch(index, e, a)
}

func (m *matcher) lastStep() Step {
	if m.o.Strict {
		return Endings
	}
	return Indentation
}

// check refuses edits that no file makes right.
func (m *matcher) check(e Edit) *toolerr.Error {
	switch {
	case e.Old == "":
		return toolerr.New(toolerr.InvalidParams, "old_string is empty, but %s is not. To insert, set old_string to an existing line and new_string to that line with the new ones.", m.o.name())
	case e.Old == e.New:
		return toolerr.New(toolerr.NoChange, "no changes to make: old_string and new_string are the same")
	case e.Expected < 0:
		return toolerr.New(toolerr.InvalidParams, "expected_replacements is %d: give the number of matches, or leave it out", e.Expected)
	}
	return nil
}

// counted checks how many places there are.
func (m *matcher) counted(e Edit, all bool, places []place, step Step) *toolerr.Error {
	switch {
	case e.Expected > 0 && len(places) != e.Expected:
		return m.miscounted(e, places, step)
	case !all && len(places) > 1:
		return m.notUnique(places, step)
	}
	return nil
}

// hit works out the changes at the places found.
func (m *matcher) hit(e Edit, p *pattern, step Step, places []place) (*hit, *toolerr.Error) {
	h := &hit{step: step, places: places, changes: make([]textdiff.Change, 0, len(places))}
	b := newBuilder(m.f, p, func() bool { return m.pace.Err() != nil })
	b.literal = m.o.Strict
	for i, where := range places {
		if m.pace.Over(perPlace) {
			break
		}
		if step >= Trailing && !isBlank(p.old[len(p.old)-1]) && (i == len(places)-1 || where.end < places[i+1].start) {
			where.end = m.f.BlanksEnd(where.end)
			places[i] = where
		}
		var failed string
		if h.changes, failed = b.at(where, h.changes); failed != "" {
			return nil, m.unshifted(where, failed)
		}
	}
	h.asGiven = b.everGiven
	if len(h.changes) == 0 {
		return nil, m.noChange(e, step, places)
	}
	if len(places) == 1 {
		h.warnings = m.twice(e, places[0])
	}
	return h, nil
}
