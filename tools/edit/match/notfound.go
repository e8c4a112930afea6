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
func (m *matcher) noMatch(index int, e Edit, a *attempt) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string not found in %s (%s); nothing was changed.", m.o.name(), textfmt.Count(m.f.Lines(), "line"))
	err := func() *toolerr.Error { return toolerr.New(toolerr.NoMatch, "%s", text.String()) }
	if len(m.f.Text) == m.f.Body {
		text.WriteString(" The file is empty.")
		return err()
	}
	if a.budget <= 0 {
		text.WriteString(" Its lines match too many places with other indentation: send them with the file's indentation.")
	}
	applied := m.applied(e)
	correction, read := m.suggestCorrection(e)
	for _, hint := range []string{applied, m.ofAnotherEdit(index, e), m.suggestNotStrict(e), correction} {
		if hint != "" {
			text.WriteString("\n" + hint)
		}
	}
	if m.o.Changed {
		text.WriteString("\nThe file changed since you viewed it.")
	}
	if m.f.Guessed && !ascii([]byte(e.Old)) {
		fmt.Fprintf(&text, "\nThe file was read as %s, which is a guess: view it with encoding=… to find the right one, then send the edit with that encoding.", m.f.Encoding)
	}
	old := a.old
	switch {
	case correction != "":
		old = lines(read, m.f.EOL)
	case a.plainOld != nil:
		old = a.plainOld
	}
	if n := len(old); n > 1 && old[n-1] == "" {
		old = old[:n-1]
	}
	block, ok := linematch.Find(linematch.Text{Body: m.f.Text[m.f.Body:], EOL: m.f.EOL, Checker: m.checker}, old)
	if !ok || len(block.Lines) == 0 {
		text.WriteString("\nNo similar lines found: find the text with view or grep, and copy old_string from there.")
		return err()
	}
	near := m.near(&text, old, block, correction == "")
	result := err().With("nearest_line", near)
	if applied != "" {
		result = result.With("applied", true)
	}
	return result
}

// applied reports where the new text already exists, or "". Short text that
// occurs everywhere does not count.
func (m *matcher) applied(e Edit) string {
	if len(strings.TrimSpace(e.New)) < 4 || strings.Contains(e.Old, e.New) {
		return ""
	}
	places := m.places(e.New, Endings)
	if len(places) == 0 || len(places) > 1 && len(places[0].lines) < 2 && len(places) > 3 {
		return ""
	}
	return fmt.Sprintf("Already applied? new_string is at %s.", m.where(places))
}

// spot holds the first and last line number of a place.
type spot struct{ lines []int }

// places returns the first places of a text, by the first step up to last that
// finds any.
func (m *matcher) places(text string, last Step) []spot {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	a := m.attempt(Edit{Old: text, New: text}, false)
	for step := Exact; step <= last; step++ {
		found, _ := a.try(step)
		if len(found) == 0 {
			continue
		}
		number := m.f.Numbers()
		var spots []spot
		for _, p := range found[:min(len(found), maxListed)] {
			first := number(p.start)
			end := max(p.start, p.end-1)
			s := spot{[]int{first}}
			if n := bytes.Count(m.f.Text[p.start:end], []byte{m.f.EOL}); n > 0 {
				s.lines = append(s.lines, first+n)
			}
			spots = append(spots, s)
		}
		return spots
	}
	return nil
}

func (m *matcher) where(spots []spot) string {
	s := spots[0]
	text := textfmt.Lines(s.lines[0], s.lines[len(s.lines)-1])
	if n := len(spots) - 1; n > 0 {
		text += fmt.Sprintf(" and %s", textfmt.Count(n, "other place"))
	}
	return text
}

// maxTried bounds the searches for the effect of other edits of a call.
const maxTried = 100

// ofAnotherEdit reports that another edit of the call would create the text or
// a part of it; otherwise it returns "".
func (m *matcher) ofAnotherEdit(index int, e Edit) string {
	for i, other := range m.edits {
		if i == index || other.New == "" {
			continue
		}
		within := strings.Contains(other.New, e.Old)
		if !within && m.tried < maxTried && strings.Contains(e.Old, other.New) {
			m.tried++
			within = len(m.places(strings.Replace(e.Old, other.New, other.Old, 1), Indentation)) > 0
		}
		if within {
			return fmt.Sprintf("Edit %d creates it, but every edit is matched against the original file: merge the two.", i+1)
		}
	}
	return ""
}

// suggestNotStrict reports where the text would match without strict.
func (m *matcher) suggestNotStrict(e Edit) string {
	if !m.o.Strict {
		return ""
	}
	if spots := m.places(e.Old, Indentation); len(spots) == 1 {
		return fmt.Sprintf("Without strict it would match at %s.", m.where(spots))
	}
	return ""
}
