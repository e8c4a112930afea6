package textdiff

import (
	"bytes"
	"strings"
)

// region is a range of whole lines of the old text, in bytes, with the new
// text.
type region struct {
	start, end int
	text       string // the new text
}

// firstRegion returns the region of the first change, and of those after it
// that share lines with it. It also returns the remaining changes.
func firstRegion(old []byte, changes []Change) (region, []Change) {
	r := region{start: bytes.LastIndexByte(old[:changes[0].Start], '\n') + 1}
	r.end = touchedEnd(old, changes[0])
	n := 1
	for {
		for n < len(changes) && (changes[n].Start < r.end || r.end == len(old)) {
			if changes[n].End >= r.end { // otherwise it ends in a line of the region
				r.end = max(r.end, touchedEnd(old, changes[n]))
			}
			n++
		}
		if r.end == len(old) || r.endsLine(old, changes[:n]) {
			break
		}
		if at := bytes.IndexByte(old[r.end:], '\n'); at >= 0 {
			r.end += at + 1
		} else {
			r.end = len(old)
		}
	}
	if n == 1 && r.start == changes[0].Start && r.end == changes[0].End {
		r.text = changes[0].New
		return r, changes[1:]
	}
	var text strings.Builder
	at := r.start
	for _, c := range changes[:n] {
		text.Write(old[at:c.Start])
		text.WriteString(c.New)
		at = c.End
	}
	text.Write(old[at:r.end])
	r.text = text.String()
	return r, changes[n:]
}

// endsLine reports whether the region's new text is empty or ends in a line
// feed. Otherwise the changes may join the text before the region with the line
// after it, even if they share no line.
func (r region) endsLine(old []byte, changes []Change) bool {
	end := r.end
	for i := len(changes) - 1; i >= 0; i-- {
		switch c := changes[i]; {
		case c.End < end:
			return old[end-1] == '\n'
		case c.New != "":
			return strings.HasSuffix(c.New, "\n")
		default:
			end = c.Start
		}
	}
	return end == r.start || old[end-1] == '\n'
}

// touchedEnd returns the end of the lines that a change touches.
func touchedEnd(old []byte, c Change) int {
	atLineStart := func(i int) bool { return i == 0 || old[i-1] == '\n' }
	whole := strings.HasSuffix(c.New, "\n") || c.New == "" && atLineStart(c.Start)
	if atLineStart(c.End) && whole && c.End > c.Start {
		return c.End
	}
	if at := bytes.IndexByte(old[c.End:], '\n'); at >= 0 {
		return c.End + at + 1
	}
	return len(old)
}

// block is a range of lines of the old text with the lines that replace them.
type block struct {
	start, end int // in old
	removed    int // lines
	added      []string
	ownsAdded  bool // added may be appended to: it is no part of another slice
}

// diffBlocks returns the blocks of lines that differ in the region; nil if o.Stopped
// says to stop.
func (r region) diffBlocks(old []byte, o Options) []block {
	before, after := string(old[r.start:r.end]), r.text
	a, b := splitLines(before), splitLines(after)
	if o.stopped() {
		return nil
	}
	runs := append(Align(a, b, o.Stopped), Run{A: len(a), B: len(b)})
	var blocks []block
	at, i, j := r.start, 0, 0
	for _, run := range runs {
		c := block{start: at, removed: run.A - i, added: b[j:run.B]}
		for ; i < run.A; i++ {
			at += len(a[i])
		}
		c.end = at
		if c.removed > 0 || len(c.added) > 0 {
			blocks = append(blocks, c)
		}
		for ; i < run.A+run.N; i++ {
			at += len(a[i])
		}
		j = run.B + run.N
	}
	return blocks
}

// splitLines splits text into lines with their endings.
func splitLines(text string) []string {
	lines := make([]string, 0, strings.Count(text, "\n")+1)
	for len(text) > 0 {
		n := strings.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		lines = append(lines, text[:n])
		text = text[n:]
	}
	return lines
}
