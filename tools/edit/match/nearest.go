package match

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

// writeNearest adds the block b, the most similar lines of the file, to text.
// With withDifference it also adds the first difference from the old text. It
// returns the number of the differing line.
func (m *matcher) writeNearest(text *strings.Builder, old []string, b linematch.Block, withDifference bool) (lineNumber int) {
	last := b.FirstLine + len(b.Lines) - 1
	what := textfmt.Lines(b.FirstLine, last)
	if len(b.Lines) == 1 && len(b.Lines[0]) >= linematch.MaxLineBytes {
		return m.writeNearestWithinLine(text, old, b)
	}
	at := b.FirstLine
	if withDifference {
		fmt.Fprintf(text, "\nClosest: %s", what)
		if len(old) > 1 {
			fmt.Fprintf(text, ", %d of %d lines match", b.MatchingLines, len(old))
		}
		if d, indented, ok := m.firstDifference(old, b); ok {
			at = m.writeDifference(text, old, b, d, indented)
			m.writeFurtherCauses(text, old, b, indented)
		} else {
			text.WriteString(". Each line was found, but not as one block.")
		}
	}
	from, to := 0, len(b.Lines)
	if to > maxBlockLines {
		from = max(0, min(at-b.FirstLine-maxBlockLines/4, to-maxBlockLines))
		to = from + maxBlockLines
		fmt.Fprintf(text, "\nLines %d-%d of the file (a shorter old_string is easier to match):\n", b.FirstLine+from, b.FirstLine+to-1)
	} else {
		fmt.Fprintf(text, "\n%s of the file, to copy:\n", capitalize(what))
	}
	for _, line := range b.Lines[from:to] {
		text.WriteString(truncateLine([]byte(line)) + "\n")
	}
	cut := strings.TrimSuffix(text.String(), "\n")
	text.Reset()
	text.WriteString(cut)
	return at
}

// writeNearestWithinLine is writeNearest for a block of one long line. It adds
// the part of the line that is most similar to the old text, and returns the
// line's number.
func (m *matcher) writeNearestWithinLine(text *strings.Builder, old []string, b linematch.Block) (lineNumber int) {
	start := m.file.BodyStart + b.Offsets[0]
	line := m.file.TrimEnding(m.file.Text[start:m.file.LineEnd(start)])
	wanted := strings.Join(old, "\n")
	wanted = wanted[:min(len(wanted), maxWantedText)]
	from, to, ok := linematch.FindWithinLine(linematch.Text{Body: line, Checker: m.checker}, wanted)
	if !ok {
		from, to = 0, 0
	}
	from, to = max(0, from-contextChars), min(len(line), to+contextChars)
	if to-from > maxFullLine {
		at := from
		for at < to && at-from < len(wanted) && line[at] == wanted[at-from] {
			at++
		}
		from, to = max(from, at-maxExcerpt/2), min(to, at+maxExcerpt/2)
	}
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	fmt.Fprintf(text, "\nClosest: line %d (%d bytes), from byte %d. Text there, to copy from:\n%s", b.FirstLine, len(line), from+1, line[from:to])
	return b.FirstLine
}

// maxBlockLines bounds the lines that an error shows for copying.
const maxBlockLines = 40

// maxWantedText bounds the old text that is compared with a long line, in
// bytes.
const maxWantedText = 2000
