package match

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// maxListed bounds the places listed in a message.
const maxListed = 20

// maxShown bounds the bytes of a line shown in a message.
const maxShown = 200

// notUnique lists the places with lines that distinguish them.
func (m *matcher) notUnique(places []place, step Step) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string matches %d places in %s%s; nothing was changed.\n", len(places), m.o.name(), overlooking(step))
	m.list(&text, places)
	fmt.Fprintf(&text, "Add lines from before or after the one you mean, so that only one matches, or set replace_all to change all %d.", len(places))
	return toolerr.New(toolerr.NotUnique, "%s", text.String()).With("matches", len(places)).With("lines", m.numbers(places))
}

// everywhere is notUnique for more than MaxPlaces.
func (m *matcher) everywhere(places []place, step Step) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string matches more than %d places in %s%s; nothing was changed.\n", MaxPlaces, m.o.name(), overlooking(step))
	m.list(&text, places[:maxListed])
	text.WriteString("  …\nAdd lines from before or after the one you mean, so that only one matches.")
	return toolerr.New(toolerr.NotUnique, "%s", text.String()).With("lines", m.numbers(places))
}

// miscounted reports the actual number of places.
func (m *matcher) miscounted(e Edit, places []place, step Step) *toolerr.Error {
	var text strings.Builder
	times := "1 place"
	if len(places) > 1 {
		times = fmt.Sprintf("%d places", len(places))
	}
	fmt.Fprintf(&text, "old_string matches %s in %s%s, but expected_replacements is %d; nothing was changed.\n", times, m.o.name(), overlooking(step), e.Expected)
	m.list(&text, places)
	fmt.Fprintf(&text, "Set expected_replacements to %d to change all, or make old_string longer.", len(places))
	return toolerr.New(toolerr.NotUnique, "%s", text.String()).With("matches", len(places)).With("lines", m.numbers(places))
}

// overlooking describes the differences that a step ignores.
func overlooking(step Step) string {
	if step == Exact {
		return ""
	}
	return fmt.Sprintf(" (ignoring %s)", step)
}

func (m *matcher) numbers(places []place) []int {
	number := m.f.Numbers()
	var all []int
	for _, p := range places[:min(len(places), maxListed)] {
		all = append(all, number(p.start))
	}
	return all
}

// list writes each place's first line with the line before it, or with the line
// after it if the lines before are all equal.
func (m *matcher) list(text *strings.Builder, places []place) {
	shown := places[:min(len(places), maxListed)]
	before := m.tellsApart(shown)
	number := m.f.Numbers()
	for _, p := range shown {
		n := number(p.start)
		start := m.f.LineStart(p.start)
		line := showLine(m.f, start, p.start)
		if before {
			if start > m.f.Body {
				fmt.Fprintf(text, "%7d- %s\n", n-1, m.lineBefore(start))
			}
			fmt.Fprintf(text, "%7d: %s\n", n, line)
			continue
		}
		fmt.Fprintf(text, "%7d: %s\n", n, line)
		if after := m.f.LineEnd(max(p.start, p.end-1)); after < len(m.f.Text) {
			fmt.Fprintf(text, "%7d- %s\n", number(after), showLine(m.f, after, after))
		}
	}
	if rest := len(places) - len(shown); rest > 0 {
		fmt.Fprintf(text, "  … and %d more places\n", rest)
	}
}

// lineBefore returns the line before the one that begins at start, for display.
func (m *matcher) lineBefore(start int) string {
	before := m.f.LineStart(start - 1)
	return showLine(m.f, before, before)
}

// tellsApart reports whether the lines before the places differ.
func (m *matcher) tellsApart(places []place) bool {
	first := ""
	for i, p := range places {
		start := m.f.LineStart(p.start)
		line := ""
		if start > m.f.Body {
			line = m.lineBefore(start)
		}
		if i > 0 && line != first {
			return true
		}
		first = line
	}
	return len(places) < 2
}

// showLine returns the line that begins at start; of a long line, the part
// around focus.
func showLine(f *splice.File, start, focus int) string {
	line := f.Text[start:]
	if at := bytes.IndexByte(line[:min(len(line), maxShown+2)], f.EOL); at >= 0 {
		return string(f.Content(line[:at+1]))
	}
	if len(line) <= maxShown {
		return string(line)
	}
	from := max(start, focus-maxShown/3)
	end := min(from+maxShown, f.LineEnd(focus))
	for from > start && !utf8.RuneStart(f.Text[from]) {
		from--
	}
	for end < len(f.Text) && !utf8.RuneStart(f.Text[end]) {
		end++
	}
	text := string(f.Content(f.Text[from:end])) + "…"
	if from > start {
		text = fmt.Sprintf("…%s (from byte %d of the line)", text, from-start+1)
	}
	return text
}

// noChange reports that the file already has the new text.
func (m *matcher) noChange(e Edit, step Step, places []place) *toolerr.Error {
	at := m.f.Numbers()(places[0].start)
	if strings.ReplaceAll(e.Old, "\r\n", "\n") == strings.ReplaceAll(e.New, "\r\n", "\n") {
		return toolerr.New(toolerr.NoChange, "no changes to make: old_string and new_string differ only in line endings, and the file keeps its own (line %d)", at)
	}
	return toolerr.New(toolerr.NoChange, "no changes to make: old_string matches line %d of %s%s, which is already as new_string", at, m.o.name(), overlooking(step))
}

// unshifted reports that the new text cannot be indented like the old one.
func (m *matcher) unshifted(where place, line string) *toolerr.Error {
	number := m.f.Numbers()
	first := number(where.start)
	return toolerr.New(toolerr.NoMatch, "old_string matches %s of %s with other indentation, but this line of new_string has too little indentation to shift: %q; nothing was changed. Send both with the file's indentation; these lines are\n%s",
		textfmt.Lines(first, number(where.end)), m.o.name(), line, m.f.Text[m.f.LineStart(where.start):min(m.f.LineEnd(where.end), where.start+maxShown*10)])
}

// twice warns if the new text contains the old one and already existed there.
func (m *matcher) twice(e Edit, where place) []string {
	at := strings.Index(e.New, e.Old)
	if at < 0 || where.start-at < m.f.Body {
		return nil
	}
	if end := where.start - at + len(e.New); end <= len(m.f.Text) && string(m.f.Text[where.start-at:end]) == e.New {
		return []string{fmt.Sprintf("new_string, which contains old_string, was already at line %d; it may now be there twice", m.f.Numbers()(where.start-at))}
	}
	return nil
}
