package fileedit

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// Difference describes how a file differs from the version that the model saw.
// Only hashes of that version's lines are stored, so a removed line is named by
// its number; the model has its text.
type Difference struct {
	// Text has the hunks of a diff; "" if no difference is known.
	Text    string
	Added   int // number of lines that the seen version did not have
	Removed int // number of seen lines that the file no longer has
	Cut     int // number of changed lines that are not in Text
	// Partial reports that lines that were never seen may differ, too.
	Partial bool
}

const (
	// maxComparedLines bounds the lines, and maxComparedSize the bytes, of a
	// file that is compared with the version seen.
	maxComparedLines = 200_000
	maxComparedSize  = 16 << 20
	// diffContext is the number of lines shown around a difference.
	diffContext = 2
	// maxLineChars is the number of characters shown of a line.
	maxLineChars = 240
)

// DifferenceFromSeen compares the file with the version that the model saw
// last. The text of the result has at most maxLines lines. For a masked file,
// and a file too large to compare, the result has no text and Partial is
// true. It is the zero value if the file is unchanged or was never seen.
func (b *Before) DifferenceFromSeen(maxLines int) Difference {
	if b.Seen == nil || !b.Exists || b.IsSeenVersion() {
		return Difference{}
	}
	now, ok := b.currentLines()
	if !ok || b.Masked || len(b.Seen.Ranges) == 0 {
		return Difference{Partial: true}
	}
	s := &comparison{now: now, seen: linesOfRanges(b.Seen.Ranges)}
	s.findHunks(b.Seen.Index.Lines)
	return s.render(maxLines)
}

// shownLine is a line of the current file: its text, shortened to maxLineChars,
// and the textfile.LineSum of the whole line.
type shownLine struct {
	text string
	sum  uint32
}

// currentLines returns the lines of the file. ok is false for a binary file and
// for a file too large to compare.
func (b *Before) currentLines() (lines []shownLine, ok bool) {
	if len(b.Content) > maxComparedSize {
		return nil, false
	}
	content := bytes.NewReader(b.Content)
	index, err := textfile.Scan(context.Background(), content, int64(len(b.Content)), textfile.Options{})
	if err != nil || index.Binary || index.Lines > maxComparedLines {
		return nil, false
	}
	err = index.EachLine(content, 1, textfile.DefaultMaxChars, func(l textfile.Line) bool {
		lines = append(lines, shownLine{clipLine(l.Text), l.Sum})
		return true
	})
	return lines, err == nil
}

// clipLine returns the first maxLineChars characters of a line, with a mark if
// it is longer.
func clipLine(text string) string {
	if utf8.RuneCountInString(text) <= maxLineChars {
		return text
	}
	return string([]rune(text)[:maxLineChars]) + "…"
}

// comparison compares the current lines with the lines that the model saw.
type comparison struct {
	now     []shownLine
	seen    []knownLine
	hunks   []hunk
	partial bool
}

// hunk says that the lines now[from:to] replace the seen lines in removed.
// removed is empty for an addition, now[from:to] for a removal.
type hunk struct {
	from, to  int // in now
	removed   []knownLine
	hasUnseen bool // some of the new lines were never seen
}

// findHunks finds the hunks. lines is the number of lines in the seen version,
// including lines that the model did not see.
func (s *comparison) findHunks(lines int64) {
	a, b := make([]uint32, len(s.seen)), make([]uint32, len(s.now))
	for i, l := range s.seen {
		a[i] = l.sum
	}
	for i, l := range s.now {
		b[i] = l.sum
	}
	runs := append(textdiff.Align(a, b, nil), textdiff.Run{A: len(a), B: len(b)})
	i, j, last := 0, 0, int64(0) // last is the number of the last matched line
	for _, run := range runs {
		next := lines + 1
		if run.A < len(s.seen) {
			next = s.seen[run.A].number
		}
		gone, come := s.seen[i:run.A], run.B-j
		unseen := int(next-last) - 1 - len(gone)
		switch {
		case unseen == 0 && (len(gone) > 0 || come > 0):
			s.hunks = append(s.hunks, hunk{from: j, to: run.B, removed: gone})
		case unseen > 0:
			s.partial = true
			if len(gone) > 0 || come != unseen {
				s.hunks = append(s.hunks, hunk{from: j, to: run.B, removed: gone, hasUnseen: true})
			}
		}
		i, j = run.A+run.N, run.B+run.N
		if run.N > 0 {
			last = s.seen[i-1].number
		}
	}
}

// render returns the hunks as a Difference with at most maxLines lines of text.
func (s *comparison) render(maxLines int) Difference {
	d := Difference{Partial: s.partial}
	var out []string
	for _, h := range s.hunks {
		out = append(out, s.hunkLines(h)...)
		d.Removed += len(h.removed)
		if !h.hasUnseen {
			d.Added += h.to - h.from
		}
	}
	if d.Cut = len(out) - maxLines; d.Cut > 0 {
		out = out[:maxLines]
	}
	d.Cut = max(d.Cut, 0)
	for i, text := range out {
		out[i] = text + "\n"
	}
	d.Text = strings.Join(out, "")
	return d
}

// hunkLines returns the lines of text of one hunk, without line ends.
func (s *comparison) hunkLines(h hunk) []string {
	out := []string{"@@ " + h.positionText() + " @@"}
	context := func(from, to int) {
		for _, l := range s.now[max(from, 0):min(to, len(s.now))] {
			out = append(out, " "+l.text)
		}
	}
	context(h.from-diffContext, h.from)
	if len(h.removed) > 0 {
		out = append(out, "-"+removedNumbers(h.removed)+" as you viewed it (text not recorded)")
	}
	switch {
	case !h.hasUnseen:
		for _, l := range s.now[h.from:h.to] {
			out = append(out, "+"+l.text)
		}
	case h.to > h.from:
		out = append(out, fmt.Sprintf("~%s now, including lines that you may not have viewed", lineNumbers(h.from+1, h.to)))
	}
	context(h.to, h.to+diffContext)
	return out
}

// positionText returns the hunk's place in the current file: "before line 3",
// "lines 3-5".
func (h hunk) positionText() string {
	if h.from == h.to {
		return fmt.Sprintf("before line %d", h.from+1)
	}
	return lineNumbers(h.from+1, h.to)
}

// lineNumbers returns "line 3" or "lines 3-5".
func lineNumbers(first, last int) string {
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, last)
}

// removedNumbers returns the numbers of gone, removed lines, as text: "line 3"
// or "lines 3-5".
func removedNumbers(gone []knownLine) string {
	return lineNumbers(int(gone[0].number), int(gone[len(gone)-1].number))
}
