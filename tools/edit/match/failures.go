package match

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// failure is the error of one edit of a call, with the index of the edit.
type failure struct {
	editIndex int
	err       *toolerr.Error
}

// joinFailures returns one error with the messages of all failures, or the
// failure itself if the call has a single edit.
func joinFailures(failures []failure, editCount int, o Options) error {
	if editCount == 1 {
		return failures[0].err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d edits failed in %s; nothing was changed.\n", len(failures), editCount, o.displayName())
	codes := make([]string, len(failures))
	for i, f := range failures {
		if i < maxListedFailures {
			fmt.Fprintf(&text, "\nedit %d: %s\n", f.editIndex+1, f.err.Error())
		}
		codes[i] = fmt.Sprintf("%d %s", f.editIndex+1, f.err.Code())
	}
	if len(failures) > maxListedFailures {
		fmt.Fprintf(&text, "\n… and %d more.\n", len(failures)-maxListedFailures)
		codes = codes[:maxListedFailures]
	}
	return toolerr.New(failures[0].err.Code(), "%s", strings.TrimRight(text.String(), "\n")).With("failed", codes)
}

// maxListedFailures bounds the failed edits that an error describes.
const maxListedFailures = 20

// noChangeError returns NO_CHANGE for an edit whose places already have the new
// text.
func (m *matcher) noChangeError(e Edit, step Step, places []place) *toolerr.Error {
	at := m.file.LineNumberer()(places[0].start)
	if strings.ReplaceAll(e.Old, "\r\n", "\n") == strings.ReplaceAll(e.New, "\r\n", "\n") {
		return toolerr.New(toolerr.NoChange, "no changes to make: old_string and new_string differ only in line endings, and the file keeps its own (line %d)", at)
	}
	return toolerr.New(toolerr.NoChange, "no changes to make: old_string matches line %d of %s%s, which already has the text of new_string", at, m.options.displayName(), describeIgnored(step))
}

// notShiftableError returns NO_MATCH for a place with other indentation, at
// which a line of the new text has less indentation than the shift would
// remove.
func (m *matcher) notShiftableError(where place, line string) *toolerr.Error {
	number := m.file.LineNumberer()
	first := number(where.start)
	return toolerr.New(toolerr.NoMatch, "old_string matches %s of %s with other indentation, but this line of new_string has too little indentation to shift: %q; nothing was changed. Send both with the file's indentation; these lines are\n%s",
		textfmt.Lines(first, number(where.end)), m.options.displayName(), line, m.file.Text[m.file.LineStart(where.start):min(m.file.LineEnd(where.end), where.start+maxExcerpt*10)])
}

// checkOverlap returns CONFLICT if two of the places, which must be sorted,
// overlap: the result would depend on the order of the edits.
func checkOverlap(f *splice.File, places []Place) error {
	number := f.LineNumberer()
	for i := 1; i < len(places); i++ {
		a, b := places[i-1], places[i]
		if b.Start < a.End {
			first, last := min(a.Edit, b.Edit)+1, max(a.Edit, b.Edit)+1
			return toolerr.New(toolerr.Conflict, "edits %d and %d overlap at line %d; nothing was changed. Merge them into one edit.", first, last, number(b.Start))
		}
	}
	return nil
}
