package match

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

// near writes the nearest block and its first difference, and returns the
// number of the differing line.
func (m *matcher) near(text *strings.Builder, old []string, b linematch.Block, explained bool) int {
	last := b.First + len(b.Lines) - 1
	what := textfmt.Lines(b.First, last)
	if len(b.Lines) == 1 && len(b.Lines[0]) >= linematch.MaxLine {
		return m.nearWithin(text, old, b)
	}
	at := b.First
	if explained {
		fmt.Fprintf(text, "\nClosest: %s", what)
		if len(old) > 1 {
			fmt.Fprintf(text, ", %d of %d lines match", b.Alike, len(old))
		}
		if d, indented, ok := m.firstDifference(old, b); ok {
			at = m.showDifference(text, old, b, d, indented)
			m.alsoDiffers(text, old, b, indented)
		} else {
			text.WriteString(". Each line was found, but not as one block.")
		}
	}
	from, to := 0, len(b.Lines)
	if to > maxBlock {
		from = max(0, min(at-b.First-maxBlock/4, to-maxBlock))
		to = from + maxBlock
		fmt.Fprintf(text, "\nLines %d-%d of the file (a shorter old_string is easier to match):\n", b.First+from, b.First+to-1)
	} else {
		fmt.Fprintf(text, "\n%s of the file, to copy:\n", capital(what))
	}
	for _, line := range b.Lines[from:to] {
		text.WriteString(clip([]byte(line)) + "\n")
	}
	cut := strings.TrimSuffix(text.String(), "\n")
	text.Reset()
	text.WriteString(cut)
	return at
}

// nearWithin writes the part of a long line that is most similar to the text.
func (m *matcher) nearWithin(text *strings.Builder, old []string, b linematch.Block) int {
	start := m.f.Body + b.Start[0]
	line := m.f.Content(m.f.Text[start:m.f.LineEnd(start)])
	wanted := strings.Join(old, "\n")
	wanted = wanted[:min(len(wanted), maxWanted)]
	from, to, ok := linematch.Within(linematch.Text{Body: line, Checker: m.checker}, wanted)
	if !ok {
		from, to = 0, 0
	}
	from, to = max(0, from-contextChars), min(len(line), to+contextChars)
	if to-from > maxCopied {
		at := from
		for at < to && at-from < len(wanted) && line[at] == wanted[at-from] {
			at++
		}
		from, to = max(from, at-maxShown/2), min(to, at+maxShown/2)
	}
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	fmt.Fprintf(text, "\nClosest: line %d (%d bytes), from byte %d. Text there, to copy from:\n%s", b.First, len(line), from+1, line[from:to])
	return b.First
}

// maxBlock bounds the lines of a block that is shown for copying.
const maxBlock = 40

// maxWanted bounds the text that is searched within a long line, in bytes.
const maxWanted = 2000
