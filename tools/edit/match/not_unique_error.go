package match

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxListedPlaces bounds the places listed in a message.
const maxListedPlaces = 20

// notUniqueError returns NOT_UNIQUE and lists the places, each with a line that
// distinguishes it.
func (m *matcher) notUniqueError(places []place, step Step) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string matches %d places in %s%s; nothing was changed.\n", len(places), m.options.displayName(), describeIgnored(step))
	m.listPlaces(&text, places)
	fmt.Fprintf(&text, "Add lines from before or after the one you mean, so that only one matches, or set replace_all to change all %d.", len(places))
	return toolerr.New(toolerr.NotUnique, "%s", text.String()).With("matches", len(places)).With("lines", m.lineNumbers(places))
}

// tooManyPlacesError returns NOT_UNIQUE for more than MaxPlaces places, and lists
// the first of them.
func (m *matcher) tooManyPlacesError(places []place, step Step) *toolerr.Error {
	var text strings.Builder
	fmt.Fprintf(&text, "old_string matches more than %d places in %s%s; nothing was changed.\n", MaxPlaces, m.options.displayName(), describeIgnored(step))
	m.listPlaces(&text, places[:maxListedPlaces])
	text.WriteString("  …\nAdd lines from before or after the one you mean, so that only one matches.")
	return toolerr.New(toolerr.NotUnique, "%s", text.String()).With("lines", m.lineNumbers(places))
}

// wrongCountError returns NOT_UNIQUE for a number of places that is not e.Expected,
// and lists the places.
func (m *matcher) wrongCountError(e Edit, places []place, step Step) *toolerr.Error {
	var text strings.Builder
	times := "1 place"
	if len(places) > 1 {
		times = fmt.Sprintf("%d places", len(places))
	}
	fmt.Fprintf(&text, "old_string matches %s in %s%s, but expected_replacements is %d; nothing was changed.\n", times, m.options.displayName(), describeIgnored(step), e.Expected)
	m.listPlaces(&text, places)
	fmt.Fprintf(&text, "Set expected_replacements to %d to change all, or make old_string longer.", len(places))
	return toolerr.New(toolerr.NotUnique, "%s", text.String()).With("matches", len(places)).With("lines", m.lineNumbers(places))
}

// describeIgnored returns " (ignoring …)" with the differences that a step
// ignores; "" for Exact.
func describeIgnored(step Step) string {
	if step == Exact {
		return ""
	}
	return fmt.Sprintf(" (ignoring %s)", step)
}

// lineNumbers returns the number of the first line of each place, of at most
// maxListedPlaces places.
func (m *matcher) lineNumbers(places []place) []int {
	number := m.file.LineNumberer()
	var all []int
	for _, p := range places[:min(len(places), maxListedPlaces)] {
		all = append(all, number(p.start))
	}
	return all
}

// listPlaces adds each place's first line to text, with the line before it. If
// the lines before are all equal, it adds the line after it instead.
func (m *matcher) listPlaces(text *strings.Builder, places []place) {
	shown := places[:min(len(places), maxListedPlaces)]
	before := m.linesBeforeDiffer(shown)
	number := m.file.LineNumberer()
	for _, p := range shown {
		n := number(p.start)
		start := m.file.LineStart(p.start)
		line := lineExcerpt(m.file, start, p.start)
		if before {
			if start > m.file.BodyStart {
				fmt.Fprintf(text, "%7d- %s\n", n-1, m.lineBefore(start))
			}
			fmt.Fprintf(text, "%7d: %s\n", n, line)
			continue
		}
		fmt.Fprintf(text, "%7d: %s\n", n, line)
		if after := m.file.LineEnd(max(p.start, p.end-1)); after < len(m.file.Text) {
			fmt.Fprintf(text, "%7d- %s\n", number(after), lineExcerpt(m.file, after, after))
		}
	}
	if rest := len(places) - len(shown); rest > 0 {
		fmt.Fprintf(text, "  … and %d more places\n", rest)
	}
}

// lineBefore returns the line before the line that begins at offset start, for
// a message. There must be one.
func (m *matcher) lineBefore(start int) string {
	before := m.file.LineStart(start - 1)
	return lineExcerpt(m.file, before, before)
}

// linesBeforeDiffer reports whether the lines before the places are not all
// equal. It returns true for a single place.
func (m *matcher) linesBeforeDiffer(places []place) bool {
	first := ""
	for i, p := range places {
		start := m.file.LineStart(p.start)
		line := ""
		if start > m.file.BodyStart {
			line = m.lineBefore(start)
		}
		if i > 0 && line != first {
			return true
		}
		first = line
	}
	return len(places) < 2
}
