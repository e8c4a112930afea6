package textdiff

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// writer puts blocks together to hunks.
type writer struct {
	old  []byte
	o    Options
	out  strings.Builder
	body int // lines written or counted
	Diff

	hunk  []block
	at    int // up to where lines of old were counted
	line  int // how many end before at
	shift int // how many lines more the new text has before the hunk
}

// block takes the next block: into the hunk at hand, when few enough lines
// are between, so that no line would stand in two hunks.
func (w *writer) block(b block) {
	if n := len(w.hunk); n > 0 {
		gap, ok := w.linesBetween(w.hunk[n-1].end, b.start, 2*context)
		if !ok {
			w.flush()
		} else if gap == 0 && b.start == w.hunk[n-1].end {
			last := &w.hunk[n-1]
			last.end, last.removed = b.end, last.removed+b.removed
			if !last.joined { // what it has is a part of other lines
				last.added, last.joined = slices.Clone(last.added), true
			}
			last.added = append(last.added, b.added...)
			return
		}
	}
	w.hunk = append(w.hunk, b)
}

// linesBetween counts lines of old, up to most.
func (w *writer) linesBetween(from, to, most int) (int, bool) {
	n := 0
	for from < to {
		from = w.next(from)
		if n++; n > most {
			return n, false
		}
	}
	return n, true
}

// next returns where the line at from ends.
func (w *writer) next(from int) int {
	if at := bytes.IndexByte(w.old[from:], '\n'); at >= 0 {
		return from + at + 1
	}
	return len(w.old)
}

// flush writes the hunk at hand.
func (w *writer) flush() {
	if len(w.hunk) == 0 {
		return
	}
	first, last := w.hunk[0], w.hunk[len(w.hunk)-1]
	start, before := first.start, 0
	for before < context && start > 0 {
		start = bytes.LastIndexByte(w.old[:start-1], '\n') + 1
		before++
	}
	end, after := last.end, 0
	for after < context && end < len(w.old) {
		end = w.next(end)
		after++
	}
	w.line += bytes.Count(w.old[min(w.at, start):start], []byte{'\n'}) - bytes.Count(w.old[start:max(w.at, start)], []byte{'\n'})
	w.at = start
	removed, added, kept := 0, 0, before+after
	for i, b := range w.hunk {
		removed, added = removed+b.removed, added+len(b.added)
		if i > 0 {
			n, _ := w.linesBetween(w.hunk[i-1].end, b.start, 2*context)
			kept += n
		}
	}
	w.head(w.line, kept+removed, kept+added)
	at := start
	for _, b := range w.hunk {
		w.keep(at, b.start)
		w.change(b)
		at = b.end
	}
	w.keep(at, end)
	w.Added, w.Removed, w.shift = w.Added+added, w.Removed+removed, w.shift+added-removed
	w.hunk = w.hunk[:0]
}

// head writes a hunk's first line. before is how many lines stand before it.
func (w *writer) head(before, oldLines, newLines int) {
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

func (w *writer) keep(from, to int) {
	for from < to {
		end := w.next(from)
		w.one(' ', w.old[from:end], 0)
		from = end
	}
}

func (w *writer) change(b block) {
	i := 0
	for from := b.start; from < b.end; i++ {
		end := w.next(from)
		focus := 0
		if w.o.MaxBytes > 0 && i < len(b.added) && w.room() {
			focus = shared(w.old[from:end], b.added[i])
		}
		w.one('-', w.old[from:end], focus)
		from = end
	}
	from := b.start
	for _, line := range b.added {
		focus := 0
		if w.o.MaxBytes > 0 && from < b.end && w.room() {
			end := w.next(from)
			focus = shared(w.old[from:end], line)
			from = end
		}
		if w.room() {
			w.one('+', []byte(line), focus)
		} else {
			w.body++
		}
	}
}

// shared returns how long the beginning is that two lines have in common.
func shared(a []byte, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// one writes a line, of which what stands at focus is to be seen.
func (w *writer) one(sign byte, line []byte, focus int) {
	if w.room() {
		w.out.WriteByte(sign)
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		if w.o.MaxBytes > 0 && len(text) > w.o.MaxBytes {
			w.window(text, focus)
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

// window writes the part of a long line around focus and says what is left
// out.
func (w *writer) window(text []byte, focus int) {
	from := max(0, min(focus-w.o.MaxBytes/4, len(text)-w.o.MaxBytes))
	to := from + w.o.MaxBytes
	for from > 0 && from < to && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	if from > 0 {
		fmt.Fprintf(&w.out, "[%d bytes]…", from)
	}
	w.out.Write(text[from:to])
	if to < len(text) {
		fmt.Fprintf(&w.out, "…[%d bytes]", len(text)-to)
	}
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

// name writes a file's name as patch and git read it: quoted where it has
// characters that would end it, with a tab at its end where it has blanks.
func name(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7F }) {
		return strconv.Quote(s)
	}
	if strings.Contains(s, " ") {
		return s + "\t"
	}
	return s
}
