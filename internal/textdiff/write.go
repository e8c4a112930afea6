package textdiff

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// writer joins blocks to hunks.
type writer struct {
	old  []byte
	o    Options
	out  strings.Builder
	body int // number of lines written or counted
	Diff

	context int // lines

	hunk  []block
	at    int // offset in old up to which lines were counted
	line  int // number of lines that end before at
	shift int // number of additional lines in the new text before the hunk
}

// addBlock adds the next block: to the current hunk if so few lines are between
// them that they would otherwise be in two hunks.
func (w *writer) addBlock(b block) {
	if n := len(w.hunk); n > 0 {
		gap, ok := w.linesBetween(w.hunk[n-1].end, b.start, 2*w.context)
		if !ok {
			w.flush()
		} else if gap == 0 && b.start == w.hunk[n-1].end {
			last := &w.hunk[n-1]
			last.end, last.removed = b.end, last.removed+b.removed
			if !last.joined { // its text is a part of other lines
				last.added, last.joined = slices.Clone(last.added), true
			}
			last.added = append(last.added, b.added...)
			return
		}
	}
	w.hunk = append(w.hunk, b)
}

// linesBetween counts lines of old, up to most; false if there are more.
func (w *writer) linesBetween(from, to, most int) (int, bool) {
	n := 0
	for from < to {
		from = w.lineEnd(from)
		if n++; n > most {
			return n, false
		}
	}
	return n, true
}

// lineEnd returns the end of the line at from.
func (w *writer) lineEnd(from int) int {
	if at := bytes.IndexByte(w.old[from:], '\n'); at >= 0 {
		return from + at + 1
	}
	return len(w.old)
}

// flush writes the current hunk.
func (w *writer) flush() {
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
	w.line += bytes.Count(w.old[min(w.at, start):start], []byte{'\n'}) - bytes.Count(w.old[start:max(w.at, start)], []byte{'\n'})
	w.at = start
	removed, added, kept := 0, 0, before+after
	for i, b := range w.hunk {
		removed, added = removed+b.removed, added+len(b.added)
		if i > 0 {
			n, _ := w.linesBetween(w.hunk[i-1].end, b.start, 2*w.context)
			kept += n
		}
	}
	w.writeHeader(w.line, kept+removed, kept+added)
	at := start
	for _, b := range w.hunk {
		w.writeContext(at, b.start)
		w.writeChange(b)
		at = b.end
	}
	w.writeContext(at, end)
	w.Added, w.Removed, w.shift = w.Added+added, w.Removed+removed, w.shift+added-removed
	w.hunk = w.hunk[:0]
}

// writeHeader writes a hunk's first line. before is the number of lines before the
// hunk.
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
	if w.room() {
		fmt.Fprintf(&w.out, "@@ -%s +%s @@\n", span(before, oldLines), span(before+w.shift, newLines))
	}
	w.body++
}

// room reports whether one more line may be written.
func (w *writer) room() bool { return w.o.MaxLines == 0 || w.body < w.o.MaxLines }

func (w *writer) writeContext(from, to int) {
	for from < to {
		end := w.lineEnd(from)
		w.writeLine(' ', w.old[from:end], part{unchanged: true})
		from = end
	}
}

func (w *writer) writeChange(b block) {
	from, i := b.start, 0
	for ; from < b.end; i++ {
		end := w.lineEnd(from)
		shown := part{}
		if i < len(b.added) {
			shown, _ = w.differingParts(w.old[from:end], b.added[i])
		}
		w.writeLine('-', w.old[from:end], shown)
		from = end
	}
	from = b.start
	for _, line := range b.added {
		shown := part{}
		if from < b.end {
			end := w.lineEnd(from)
			_, shown = w.differingParts(w.old[from:end], line)
			from = end
		}
		if w.room() {
			w.writeLine('+', []byte(line), shown)
		} else {
			w.body++
		}
	}
}

// writeLine writes a line; of a long line, the part to be shown.
func (w *writer) writeLine(sign byte, line []byte, shown part) {
	if w.room() {
		w.out.WriteByte(sign)
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		if w.o.MaxBytes > 0 && (len(text) > w.o.MaxBytes || shown.unchanged && w.o.Window > 0 && len(text) > 2*w.o.Window) {
			w.writePart(text, shown)
		} else {
			w.out.Write(text)
		}
		w.out.WriteByte('\n')
		if !ended {
			w.out.WriteString("\\ No newline at end of file\n")
		}
	}
	w.body++
}

func (w *writer) diff() Diff {
	d := w.Diff
	if w.body == 0 {
		return d
	}
	if w.o.MaxLines > 0 && w.body > w.o.MaxLines {
		d.Cut = w.body - w.o.MaxLines
	}
	if w.o.Old != "" || w.o.New != "" {
		d.Text = fmt.Sprintf("--- %s\n+++ %s\n", name(w.o.Old), name(w.o.New))
	}
	d.Text += w.out.String()
	return d
}

// name writes a file name in the syntax of patch and git: quoted if it has
// special characters, with a final tab if it has blanks.
func name(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7F }) {
		return strconv.Quote(s)
	}
	if strings.Contains(s, " ") {
		return s + "\t"
	}
	return s
}
