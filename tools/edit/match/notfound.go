package match

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

// noMatch returns an error that explains a missing old text: the change is
// already applied, the text as sent has a mistake, or the nearest lines and
// their first difference.
func (m *matcher) noMatchError(index int, e Edit, a *editSearch) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string not found in %s (%s); nothing was changed.", m.options.displayName(), textfmt.Count(m.file.LineCount(), "line"))
	err := func() *toolerr.Error { return toolerr.New(toolerr.NoMatch, "%s", text.String()) }
	if len(m.file.Text) == m.file.BodyStart {
		text.WriteString(" The file is empty.")
		return err()
	}
	if a.indentBudget <= 0 {
		text.WriteString(" Its lines match too many places with other indentation: send them with the file's indentation.")
	}
	applied := m.hintApplied(e)
	correction, read := m.hintCorrection(e)
	for _, hint := range []string{applied, m.hintOtherEdit(index, e), m.hintNotStrict(e), correction} {
		if hint != "" {
			text.WriteString("\n" + hint)
		}
	}
	if m.options.Changed {
		text.WriteString("\nThe file changed since you viewed it.")
	}
	if m.file.Guessed && !isASCII([]byte(e.Old)) {
		fmt.Fprintf(&text, "\nThe file was read as %s, which is a guess: view it with encoding=… to find the right one, then send the edit with that encoding.", m.file.Encoding)
	}
	old := a.old
	switch {
	case correction != "":
		old = splitLines(read, m.file.EOL)
	case a.unnumberedOld != nil:
		old = a.unnumberedOld
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

// applied reports where the new text already exists, or "". Short text that
// occurs everywhere does not count.
func (m *matcher) hintApplied(e Edit) string {
	if len(strings.TrimSpace(e.New)) < 4 || strings.Contains(e.Old, e.New) {
		return ""
	}
	places := m.placesOf(e.New, Endings)
	if len(places) == 0 || len(places) > 1 && len(places[0].lines) < 2 && len(places) > 3 {
		return ""
	}
	return fmt.Sprintf("Already applied? new_string is at %s.", m.describePlaces(places))
}

// spot holds the first and last line number of a place.
type lineSpan struct{ lines []int }

// places returns the first places of a text, by the first step up to last that
// finds any.
func (m *matcher) placesOf(text string, last Step) []lineSpan {
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

func (m *matcher) describePlaces(spots []lineSpan) string {
	s := spots[0]
	text := textfmt.Lines(s.lines[0], s.lines[len(s.lines)-1])
	if n := len(spots) - 1; n > 0 {
		text += fmt.Sprintf(" and %s", textfmt.Count(n, "other place"))
	}
	return text
}

// maxTried bounds the searches for the effect of other edits of a call.
const maxRevertedSearches = 100

// ofAnotherEdit reports that another edit of the call would create the text or
// a part of it; otherwise it returns "".
func (m *matcher) hintOtherEdit(index int, e Edit) string {
	for i, other := range m.edits {
		if i == index || other.New == "" {
			continue
		}
		within := strings.Contains(other.New, e.Old)
		if !within && m.revertedSearches < maxRevertedSearches && strings.Contains(e.Old, other.New) {
			m.revertedSearches++
			within = len(m.placesOf(strings.Replace(e.Old, other.New, other.Old, 1), Indentation)) > 0
		}
		if within {
			return fmt.Sprintf("Edit %d creates it, but every edit is matched against the original file: merge the two.", i+1)
		}
	}
	return ""
}

// suggestNotStrict reports where the text would match without strict.
func (m *matcher) hintNotStrict(e Edit) string {
	if !m.options.Strict {
		return ""
	}
	if spots := m.placesOf(e.Old, Indentation); len(spots) == 1 {
		return fmt.Sprintf("Without strict it would match at %s.", m.describePlaces(spots))
	}
	return ""
}
