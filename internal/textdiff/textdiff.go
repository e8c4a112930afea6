// Package textdiff writes unified diffs, as accepted by git apply and patch, of
// text in memory whose changes are known. The cost depends on the size of the
// changes, not of the file.
//
// An editor passes its changes. A caller that has only two versions gets the
// changes from Between:
//
//	d := textdiff.Unified(old, textdiff.Between(old, new), textdiff.Options{Old: "a/x.go", New: "b/x.go", MaxLines: 60})
//	fmt.Print(d.Text)
//
// Align compares changed text line by line, with sergi/go-diff. Beyond its
// limits, which are sizes and not times, a block is shown as replaced: the diff
// is correct, only longer. Line endings are kept unchanged; a line ends at a
// line feed, as in git. The caller decodes text that is not UTF-8, and the diff
// shows the decoded text.
//
// This package writes the hunks itself, since go-diff writes patches of
// characters, which neither git nor patch can read.
package textdiff

import (
	"bytes"
	"cmp"
	"strings"
)

// Change replaces the bytes from Start to End by New.
type Change struct {
	Start, End int
	New        string
}

// Options configures a diff. The zero value gives a complete diff with 3 lines
// of context and no header.
type Options struct {
	Old, New string // names for the header, as "a/x.go"; "" for none, "/dev/null" for no file
	MaxLines int    // limit of the diff's body; further lines are counted. 0: no limit
	// MaxBytes is the longest line, in bytes, that is shown completely; 0: no
	// limit. Window is the number of characters shown of a longer line; 0: as
	// many as MaxBytes. Of a changed line, the window is around the change; the
	// old line shows the removed text. If a line has several changes far apart,
	// half a window is shown for each of the first five. Of an unchanged line,
	// its beginning is shown; if it is longer than two windows, half a window.
	MaxBytes, Window int
	Context          int // unchanged lines around a change; 0: 3
	// Lines is the number of lines that end before offset At. It saves counting
	// them from the beginning.
	At, Lines int
	// Stopped is called between changes and reports whether to give up: the
	// diff then contains only the changes so far. nil: never.
	Stopped func() bool
}

func (o Options) stopped() bool { return o.Stopped != nil && o.Stopped() }

// Diff is a unified diff.
type Diff struct {
	Text    string
	Added   int // lines
	Removed int
	Cut     int // number of lines of the diff that are not in Text
}

// defaultContext is the number of unchanged lines around a change.
const defaultContext = 3

// Between returns the change that turns old into new: one range of whole lines,
// or nothing.
func Between(old []byte, newText string) []Change {
	n := min(len(old), len(newText))
	head := 0
	for head < n && old[head] == newText[head] {
		head++
	}
	if head == len(old) && head == len(newText) {
		return nil
	}
	tail := 0
	for tail < n-head && old[len(old)-1-tail] == newText[len(newText)-1-tail] {
		tail++
	}
	head = bytes.LastIndexByte(old[:head], '\n') + 1
	if tail > 0 { // to the end of the line, which both have
		if at := bytes.IndexByte(old[len(old)-tail:], '\n'); at >= 0 {
			tail -= at + 1
		} else {
			tail = 0
		}
	}
	return []Change{{Start: head, End: len(old) - tail, New: newText[head : len(newText)-tail]}}
}

// Unified returns the diff between old and the result of the changes, which
// must be sorted and must not overlap.
func Unified(old []byte, changes []Change, o Options) Diff {
	w := &writer{old: old, o: o, at: o.At, line: o.Lines, context: cmp.Or(o.Context, defaultContext)}
	for len(changes) > 0 && !o.stopped() {
		var r region
		r, changes = firstRegion(old, changes)
		for _, b := range r.blocks(old, o) {
			w.addBlock(b)
		}
	}
	w.flush()
	return w.diff()
}

// region is a range of whole old lines with their new text.
type region struct {
	start, end int
	text       string
}

// firstRegion removes the first changes that share lines, and returns them as a
// region.
func firstRegion(old []byte, changes []Change) (region, []Change) {
	r := region{start: bytes.LastIndexByte(old[:changes[0].Start], '\n') + 1}
	r.end = lineEnd(old, changes[0])
	n := 1
	for {
		for n < len(changes) && (changes[n].Start < r.end || r.end == len(old)) {
			if changes[n].End >= r.end { // otherwise it ends in a line of the region
				r.end = max(r.end, lineEnd(old, changes[n]))
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

// endsLine reports whether the region's new text ends in a line feed or is
// empty. Otherwise, even changes without a common line may join the text before
// the first of them with the line after the last.
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

// lineEnd returns the end of the lines that a change touches.
func lineEnd(old []byte, c Change) int {
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

// block is a range of old lines with the lines that replace them.
type block struct {
	start, end int // in old
	removed    int // lines
	added      []string
	joined     bool // added is the block's own slice
}

// blocks compares the lines of a region.
func (r region) blocks(old []byte, o Options) []block {
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
