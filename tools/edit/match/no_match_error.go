package match

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

// noMatchError returns NO_MATCH with the likely cause: the change is already
// applied, the text as sent has a mistake, or the most similar lines and their
// first difference. index is the edit's position in the call, search the one
// that failed.
func (m *matcher) noMatchError(index int, e Edit, search *editSearch) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string not found in %s (%s); nothing was changed.", m.options.displayName(), textfmt.Count(m.file.LineCount(), "line"))
	err := func() *toolerr.Error { return toolerr.New(toolerr.NoMatch, "%s", text.String()) }
	if len(m.file.Text) == m.file.BodyStart {
		text.WriteString(" The file is empty.")
		return err()
	}
	if search.indentBudget <= 0 {
		text.WriteString(" Its lines match too many places with other indentation: send them with the file's indentation.")
	}
	applied := m.hintApplied(e)
	correction, corrected := m.hintCorrection(e)
	for _, hint := range []string{applied, m.hintOtherEdit(index, e), m.hintNotStrict(e), correction} {
		if hint != "" {
			text.WriteString("\n" + hint)
		}
	}
	if m.options.Changed {
		text.WriteString("\nThe file changed since you viewed it.")
	}
	if m.file.Guessed && !textfile.IsASCII([]byte(e.Old)) {
		fmt.Fprintf(&text, "\nThe file was read as %s, which is a guess: view it with encoding=… to find the right one, then send the edit with that encoding.", m.file.Encoding)
	}
	old := search.old
	switch {
	case correction != "":
		old = splitLines(corrected, m.file.EOL)
	case search.unnumberedOld != nil:
		old = search.unnumberedOld
	}
	if n := len(old); n > 1 && old[n-1] == "" {
		old = old[:n-1]
	}
	block, ok := linematch.Find(linematch.Text{Body: m.file.Text[m.file.BodyStart:], EOL: m.file.EOL, Checker: m.checker}, old)
	if !ok || len(block.Lines) == 0 {
		text.WriteString("\nNo similar lines found: find the text with view or grep, and copy old_string from there.")
		return err()
	}
	near := m.writeNearest(&text, old, block, correction == "")
	result := err().With("nearest_line", near)
	if applied != "" {
		result = result.With("applied", true)
	}
	return result
}

// hintApplied returns a hint about where the file already has the new text; ""
// if it does not, or if the new text is short and occurs everywhere.
func (m *matcher) hintApplied(e Edit) string {
	if len(strings.TrimSpace(e.New)) < 4 || strings.Contains(e.Old, e.New) {
		return ""
	}
	places := m.lineSpansOf(e.New, Endings)
	if len(places) == 0 || len(places) > 1 && len(places[0].lines) < 2 && len(places) > 3 {
		return ""
	}
	return fmt.Sprintf("Already applied? new_string is at %s.", m.describePlaces(places))
}

// lineSpan has the first line number of a place and, if it has several lines,
// the last.
type lineSpan struct{ lines []int }

// lineSpansOf returns the line numbers of the first places of a text. It uses
// the first step, up to last, that finds the text, and returns nil if no step
// does.
func (m *matcher) lineSpansOf(text string, last Step) []lineSpan {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	a := m.newEditSearch(Edit{Old: text, New: text}, false)
	for step := Exact; step <= last; step++ {
		found, _ := a.findAtStep(step)
		if len(found) == 0 {
			continue
		}
		number := m.file.LineNumberer()
		var spots []lineSpan
		for _, p := range found[:min(len(found), maxListedPlaces)] {
			first := number(p.start)
			end := max(p.start, p.end-1)
			s := lineSpan{[]int{first}}
			if n := bytes.Count(m.file.Text[p.start:end], []byte{m.file.EOL}); n > 0 {
				s.lines = append(s.lines, first+n)
			}
			spots = append(spots, s)
		}
		return spots
	}
	return nil
}

// describePlaces names the first place and the number of further places. spans
// must not be empty.
func (m *matcher) describePlaces(spans []lineSpan) string {
	s := spans[0]
	text := textfmt.Lines(s.lines[0], s.lines[len(s.lines)-1])
	if n := len(spans) - 1; n > 0 {
		text += fmt.Sprintf(" and %s", textfmt.Count(n, "other place"))
	}
	return text
}

// maxRevertedSearches bounds, for a call, the searches for a text as it was
// before another edit.
const maxRevertedSearches = 100

// hintOtherEdit returns a hint that another edit of the call would create the old text or
// a part of it; "" if no edit does. e is the edit with the index index in m.edits.
func (m *matcher) hintOtherEdit(index int, e Edit) string {
	for i, other := range m.edits {
		if i == index || other.New == "" {
			continue
		}
		creates := strings.Contains(other.New, e.Old)
		if !creates && m.revertedSearches < maxRevertedSearches && strings.Contains(e.Old, other.New) {
			m.revertedSearches++
			creates = len(m.lineSpansOf(strings.Replace(e.Old, other.New, other.Old, 1), Indentation)) > 0
		}
		if creates {
			return fmt.Sprintf("Edit %d creates it, but every edit is matched against the original file: merge the two.", i+1)
		}
	}
	return ""
}

// hintNotStrict returns a hint about the place where the text would match
// without strict; "" if there is no single such place.
func (m *matcher) hintNotStrict(e Edit) string {
	if !m.options.Strict {
		return ""
	}
	if spots := m.lineSpansOf(e.Old, Indentation); len(spots) == 1 {
		return fmt.Sprintf("Without strict it would match at %s.", m.describePlaces(spots))
	}
	return ""
}
