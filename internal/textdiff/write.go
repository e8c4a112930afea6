package textdiff

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// writer joins blocks to hunks and writes these.
type writer struct {
	old       []byte
	options   Options
	out       strings.Builder
	bodyLines int // number of lines written or counted
	Diff

	context int // unchanged lines around a change

	hunk        []block // the blocks of the current hunk
	countedTo   int     // offset in old up to which lines were counted
	linesBefore int     // number of lines that end before countedTo
	lineShift   int     // number of additional lines in the new text before the hunk
}

// addBlock adds the next block. It first writes the current hunk, unless so few
// lines are between them that both blocks belong to one hunk.
func (w *writer) addBlock(b block) {
	if n := len(w.hunk); n > 0 {
		gap, ok := w.linesBetween(w.hunk[n-1].end, b.start, 2*w.context)
		if !ok {
			w.writeHunk()
		} else if gap == 0 && b.start == w.hunk[n-1].end {
			last := &w.hunk[n-1]
			last.end, last.removed = b.end, last.removed+b.removed
			if !last.ownsAdded { // its text is a part of other lines
				last.added, last.ownsAdded = slices.Clone(last.added), true
			}
			last.added = append(last.added, b.added...)
			return
		}
	}
	w.hunk = append(w.hunk, b)
}

// linesBetween returns the number of lines in old[from:to]. ok is false if
// there are more than most.
func (w *writer) linesBetween(from, to, most int) (n int, ok bool) {
	for from < to {
		from = w.lineEnd(from)
		if n++; n > most {
			return n, false
		}
	}
	return n, true
}

// lineEnd returns the end of the line of old that contains offset from.
func (w *writer) lineEnd(from int) int {
	if at := bytes.IndexByte(w.old[from:], '\n'); at >= 0 {
		return from + at + 1
	}
	return len(w.old)
}

// writeHunk writes the current hunk with its context, and starts a new one.
func (w *writer) writeHunk() {
	if len(w.hunk) == 0 {
		return
	}
	first, last := w.hunk[0], w.hunk[len(w.hunk)-1]
	start, before := first.start, 0
	for before < w.context && start > 0 {
		start = bytes.LastIndexByte(w.old[:start-1], '\n') + 1
		before++
	}
	end, after := last.end, 0
	for after < w.context && end < len(w.old) {
		end = w.lineEnd(end)
		after++
	}
	w.linesBefore += bytes.Count(w.old[min(w.countedTo, start):start], []byte{'\n'}) - bytes.Count(w.old[start:max(w.countedTo, start)], []byte{'\n'})
	w.countedTo = start
	removed, added, kept := 0, 0, before+after
	for i, b := range w.hunk {
		removed, added = removed+b.removed, added+len(b.added)
		if i > 0 {
			n, _ := w.linesBetween(w.hunk[i-1].end, b.start, 2*w.context)
			kept += n
		}
	}
	w.writeHeader(w.linesBefore, kept+removed, kept+added)
	at := start
	for _, b := range w.hunk {
		w.writeContext(at, b.start)
		w.writeChange(b)
		at = b.end
	}
	w.writeContext(at, end)
	w.Added, w.Removed, w.lineShift = w.Added+added, w.Removed+removed, w.lineShift+added-removed
	w.hunk = w.hunk[:0]
}

// writeHeader writes the first line of a hunk. before is the number of old
// lines before it, oldLines and newLines are its numbers of lines.
func (w *writer) writeHeader(before, oldLines, newLines int) {
	span := func(before, lines int) string {
		switch lines {
		case 0:
			return fmt.Sprintf("%d,0", before)
		case 1:
			return fmt.Sprint(before + 1)
		}
		return fmt.Sprintf("%d,%d", before+1, lines)
	}
	if w.hasRoom() {
		fmt.Fprintf(&w.out, "@@ -%s +%s @@\n", span(before, oldLines), span(before+w.lineShift, newLines))
	}
	w.bodyLines++
}

// hasRoom reports whether one more line may be written.
func (w *writer) hasRoom() bool { return w.options.MaxLines == 0 || w.bodyLines < w.options.MaxLines }

// writeContext writes old[from:to] as unchanged lines.
func (w *writer) writeContext(from, to int) {
	for from < to {
		end := w.lineEnd(from)
		w.writeLine(' ', w.old[from:end], shownPart{isContext: true})
		from = end
	}
}

// writeChange writes the removed and added lines of a block.
func (w *writer) writeChange(b block) {
	from, i := b.start, 0
	for ; from < b.end; i++ {
		end := w.lineEnd(from)
		shown := shownPart{}
		if i < len(b.added) {
			shown, _ = w.differingParts(w.old[from:end], b.added[i])
		}
		w.writeLine('-', w.old[from:end], shown)
		from = end
	}
	from = b.start
	for _, line := range b.added {
		shown := shownPart{}
		if from < b.end {
			end := w.lineEnd(from)
			_, shown = w.differingParts(w.old[from:end], line)
			from = end
		}
		if w.hasRoom() {
			w.writeLine('+', []byte(line), shown)
		} else {
			w.bodyLines++
		}
	}
}

// writeLine writes a line after its sign. Of a long line it writes the part
// shown. If there is no room, it only counts the line.
func (w *writer) writeLine(sign byte, line []byte, shown shownPart) {
	if w.hasRoom() {
		w.out.WriteByte(sign)
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		if w.options.MaxLineBytes > 0 && (len(text) > w.options.MaxLineBytes || shown.isContext && w.options.WindowChars > 0 && len(text) > 2*w.options.WindowChars) {
			w.writePart(text, shown)
		} else {
			w.out.Write(text)
		}
		w.out.WriteByte('\n')
		if !ended {
			w.out.WriteString("\\ No newline at end of file\n")
		}
	}
	w.bodyLines++
}

// diff returns the result, with the file header if names are given.
func (w *writer) diff() Diff {
	d := w.Diff
	if w.bodyLines == 0 {
		return d
	}
	if w.options.MaxLines > 0 && w.bodyLines > w.options.MaxLines {
		d.Cut = w.bodyLines - w.options.MaxLines
	}
	if w.options.Old != "" || w.options.New != "" {
		d.Text = fmt.Sprintf("--- %s\n+++ %s\n", patchName(w.options.Old), patchName(w.options.New))
	}
	d.Text += w.out.String()
	return d
}

// patchName returns a file name in the syntax of patch and git: quoted if it
// has special characters, with a final tab if it has blanks.
func patchName(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7F }) {
		return strconv.Quote(s)
	}
	if strings.Contains(s, " ") {
		return s + "\t"
	}
	return s
}
