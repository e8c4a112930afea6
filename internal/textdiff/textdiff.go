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
	MaxLines int    // number of lines in the diff's body; further lines are only counted. 0: no limit
	// MaxLineBytes is the longest line, in bytes, that is shown completely; 0:
	// no limit. WindowChars is the number of characters shown of a longer line;
	// 0: as many as MaxLineBytes. Of a changed line, the window is around the
	// change; the old line shows the removed text. If a line has several
	// changes far apart, half a window is shown for each of the first five. Of
	// an unchanged line, the beginning is shown: half a window. An unchanged
	// line is shortened if it is longer than two windows, too.
	MaxLineBytes, WindowChars int
	Context                   int // unchanged lines around a change; 0: 3
	// KnownLines is the number of lines that end before offset KnownOffset. It
	// saves counting them from the beginning.
	KnownOffset, KnownLines int
	// Stopped is called between changes and reports whether to give up: the
	// diff then contains only the changes so far. nil: never.
	Stopped func() bool
}

// stopped reports whether Options.Stopped ends the diff; false without it.
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

// Between returns the change that turns old into newText: one change of whole
// lines, or nil if they are equal.
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
	w := &writer{old: old, options: o, countedTo: o.KnownOffset, linesBefore: o.KnownLines, context: cmp.Or(o.Context, defaultContext)}
	for len(changes) > 0 && !o.stopped() {
		var r region
		r, changes = firstRegion(old, changes)
		for _, b := range r.diffBlocks(old, o) {
			w.addBlock(b)
		}
	}
	w.writeHunk()
	return w.diff()
}
