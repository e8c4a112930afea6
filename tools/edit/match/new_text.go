package match

import (
	"bytes"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// changeBuilder computes the changes that replace a pattern's places by its new
// text. Where the new text repeats the old text, the file's bytes are kept:
// line endings, trailing blanks, quotes. "Write" in the names of its methods
// means to append to the new text of the place.
type changeBuilder struct {
	file    *splice.File
	pattern *pattern
	pairs   []linePair  // for each new line, the old line that it replaces
	shift   indentShift // of the indentation at the place
	stop    func() bool // reports that the call is cancelled

	// State at one place. The text of the file up to cursor has been kept,
	// replaced or removed, and pending is the new text after it.
	cursor        int
	changes       []textdiff.Change
	pending       strings.Builder
	where         place        // the place
	lastEnding    string       // line ending of the last line written; "": none so far
	cachedLine    place        // the line for which cachedEnding was looked up
	cachedEnding  string       // its line ending, or one nearby
	parts         []linePart   // the lines of the place
	startsMidLine bool         // the place begins after the start of its line
	leadIsPaired  bool         // indentPairs begins with the indentation before the place
	indentPairs   []indentPair // of the old lines that are not blank
	unshiftable   string       // a new line that has too little indentation for the shift; "": none

	strict          bool     // insert new text as it is, whatever precedes the place
	verbatim        verbatim // new lines that are not shifted at the place
	firstIndent     string   // with verbatimRest, the indentation of the first line
	pairedByContent bool     // pairs was computed from lines without indentation
	anyNotShifted   bool     // at some place, new text with the file's indentation was not shifted
}

// linePart is a line of the file, or the part of it within a place, as offsets:
// its text from start, the blanks after it that the pattern lacks, and the line
// ending from blanksEnd to end.
type linePart struct{ start, textEnd, blanksEnd, end int }

// newBuilder returns a builder for all places of a pattern. stop reports that
// the call is cancelled; the changes are invalid then.
func newBuilder(f *splice.File, p *pattern, stop func() bool) *changeBuilder {
	return &changeBuilder{file: f, pattern: p, stop: stop, pairs: pairLines(p.old, p.new, stop)}
}

// appendChanges appends the changes at a place to changes, sorted. failed is a
// new line that cannot be indented like the file, or the reason why the place
// does not fit; "" means success. Places must ascend.
func (b *changeBuilder) appendChanges(where place, changes []textdiff.Change) (all []textdiff.Change, failed string) {
	if len(b.pattern.old) == 1 && len(b.pattern.new) == 1 && b.pattern.step <= Numbers {
		return b.appendWithinLine(where, changes), ""
	}
	b.cursor, b.changes, b.unshiftable = where.start, changes, ""
	b.pending.Reset()
	b.parts = b.splitPlace(where)
	b.lastEnding, b.where = "", where
	old, newLines := b.pattern.old, b.pattern.new
	if len(b.parts) < len(old) { // the file's last line has no ending
		old = old[:len(b.parts)]
		if n := len(newLines); n > 1 && newLines[n-1] == "" {
			newLines = newLines[:n-1]
		}
	}
	if b.pattern.step == Indentation && !b.chooseShift(where, old, true) {
		return changes, "not uniform"
	}
	b.setVerbatim(old, newLines)
	lead := b.repeatedLeadLength(where)
	b.anyNotShifted = b.anyNotShifted || lead > 0
	for j := range newLines {
		with := b.pairs[j]
		if with.oldLine >= len(old) {
			with = linePair{oldLine: -1}
		}
		if b.startsMidLine && with.equal && (j == 0) != (with.oldLine == 0) {
			with.equal = false
		}
		line := newLines[j]
		if j == 0 && lead > 0 {
			line = line[lead:]
			with.equal = with.oldLine == 0 && line == old[0]
		}
		if b.verbatim != verbatimNone {
			b.writeLineVerbatim(j, line, &with)
		} else {
			b.writeLine(j, line, old, with)
		}
		if j < len(newLines)-1 {
			b.writeEnding(with)
		}
	}
	b.flushUpTo(where.end)
	return b.changes, b.unshiftable
}

// appendWithinLine is appendChanges for a pattern whose old and new text have
// one line each. It allocates no strings.
func (b *changeBuilder) appendWithinLine(where place, changes []textdiff.Change) []textdiff.Change {
	old, newLines := b.pattern.old[0], b.pattern.new[0]
	if old == newLines {
		return changes
	}
	if lead := b.repeatedLeadLength(where); lead > 0 {
		newLines, b.anyNotShifted = newLines[lead:], true
	}
	head, tail := commonEnds(old, newLines)
	return append(changes, textdiff.Change{Start: where.start + head, End: where.end - tail, New: newLines[head : len(newLines)-tail]})
}

// splitPlace returns the lines of a place, at most as many as the old text has.
func (b *changeBuilder) splitPlace(where place) []linePart {
	var parts []linePart
	for at := where.start; ; {
		end := where.end
		if n := bytes.IndexByte(b.file.Text[at:end], b.file.EOL); n >= 0 {
			end = at + n + 1
		}
		line := b.file.Text[at:end]
		part := linePart{start: at, end: end}
		part.blanksEnd = at + len(b.file.TrimEnding(line))
		part.textEnd = part.blanksEnd
		i := len(parts)
		if b.pattern.step >= Trailing && i < len(b.pattern.old) && len(trimTrailingBlanks([]byte(b.pattern.old[i]))) == len(b.pattern.old[i]) {
			part.textEnd = at + len(trimTrailingBlanks(b.file.Text[at:part.blanksEnd]))
		}
		ended := end > at && b.file.Text[end-1] == b.file.EOL
		parts = append(parts, part)
		at = end
		if !ended || len(parts) == len(b.pattern.old) {
			return parts
		}
	}
}

// writeLine writes new line j, given as line, with the file's indentation. old
// has the lines of the old text, with the one that the line replaces.
func (b *changeBuilder) writeLine(j int, line string, old []string, with linePair) {
	if b.startsMidLine && j == 0 && !with.equal {
		line = b.withoutLead(line)
	}
	if with.oldLine < 0 || b.pattern.step == Indentation && isBlank(line) != isBlank(old[with.oldLine]) {
		b.insertText(b.shiftLine(j, line)) // no old line gives its indentation
		return
	}
	part := b.parts[with.oldLine]
	if with.equal {
		end := part.textEnd
		if with.oldLine == len(old)-1 || j == len(b.pattern.new)-1 && b.pattern.step >= Trailing && b.file.AtLineEnd(b.where.end) {
			end = part.blanksEnd
		}
		b.keepFileText(part.start, end)
		return
	}
	was := old[with.oldLine]
	if b.pattern.step >= Trailing {
		was = was[:len(trimTrailingBlanks([]byte(was)))]
	}
	from := part.start
	to := from + len(trimTrailingBlanks(b.file.Text[from:part.textEnd]))
	if b.pattern.step < Trailing {
		to = part.textEnd
	}
	if b.pattern.step == Indentation && !(b.startsMidLine && (j == 0 || with.oldLine == 0)) {
		n, m := indentSize(was), indentSize(line)
		size := indentSize(b.file.Text[from:to])
		if was[:n] == line[:m] {
			b.keepFileText(from, from+size)
		} else {
			b.insertText(b.shiftLine(j, line[:m]))
		}
		from, was, line = from+size, was[n:], line[m:]
	} else if b.startsMidLine && (j == 0) != (with.oldLine == 0) {
		b.insertText(b.shiftLine(j, line))
		return
	}
	b.writeChangedLine(from, to, was, line)
}

// writeChangedLine writes the new line for the file's text from from to to,
// which matches the old line was. It keeps the file's bytes for text that the
// old and the new line share.
func (b *changeBuilder) writeChangedLine(from, to int, was, line string) {
	if b.pattern.step < Punctuation || !b.writeChangedWords(from, to, was, line) {
		head, tail := 0, 0
		if string(b.file.Text[from:to]) == was {
			head, tail = commonEnds(was, line)
		}
		b.keepFileText(from, from+head)
		b.insertText(line[head : len(line)-tail])
		b.keepFileText(to-tail, to)
	}
}

// insertText writes new text that the file does not have.
func (b *changeBuilder) insertText(text string) { b.pending.WriteString(text) }

// keepFileText keeps a range of the file. Text of the file before it that was not kept
// is removed.
func (b *changeBuilder) keepFileText(start, end int) {
	if start < end {
		b.flushUpTo(start)
		b.cursor = end
	}
}

// flushUpTo turns the pending new text and the text of the file from cursor to the
// offset to, which was not kept, into a change.
func (b *changeBuilder) flushUpTo(to int) {
	if to > b.cursor || b.pending.Len() > 0 {
		if text := b.pending.String(); text != string(b.file.Text[b.cursor:to]) {
			b.changes = append(b.changes, textdiff.Change{Start: b.cursor, End: to, New: text})
		}
		b.pending.Reset()
	}
	b.cursor = to
}
