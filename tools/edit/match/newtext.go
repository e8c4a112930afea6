package match

import (
	"bytes"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// builder turns a pattern's new text into changes at a place. Where the new
// text repeats the old, the file's bytes are kept: line endings, trailing
// blanks, quotes.
type builder struct {
	f        *splice.File
	p        *pattern
	partners []partner // for each new line
	shift    shift
	stop     func() bool // reports that the call is cancelled

	// at one place
	cursor  int
	changes []textdiff.Change
	pending strings.Builder
	where   place
	ending  string // of the last line written; "": none so far
	line    place  // the line for which lineEnd was looked up
	lineEnd string // its ending
	part    []fragment
	within  bool // the place begins after the indentation of its line
	headed  bool // that indentation is the first of dents
	dents   []dent
	failed  string

	literal    bool // do not fit new text to the text before the place
	verbatim   verbatim
	firstShift string // with givenRest, the indentation of the first line
	asGiven    bool   // partners are paired by the lines' text without indentation
	everGiven  bool   // the new text of some place was not shifted
}

// fragment is a line of the file, or the part of it within a place, as offsets:
// its text, then blanks that the pattern lacks, then the ending.
type fragment struct{ start, text, blanks, end int }

func newBuilder(f *splice.File, p *pattern, stop func() bool) *builder {
	return &builder{f: f, p: p, stop: stop, partners: partnersOf(p.old, p.new, stop)}
}

// at appends the changes at a place to others, sorted. failed describes why the
// new text could not be fitted, or is "".
func (b *builder) at(where place, changes []textdiff.Change) (all []textdiff.Change, failed string) {
	if len(b.p.old) == 1 && len(b.p.new) == 1 && b.p.step <= Numbers {
		return b.word(where, changes), ""
	}
	b.cursor, b.changes, b.failed = where.start, changes, ""
	b.pending.Reset()
	b.part = b.fragments(where)
	b.ending, b.where = "", where
	old, newLines := b.p.old, b.p.new
	if len(b.part) < len(old) { // the file's last line has no ending
		old = old[:len(b.part)]
		if n := len(newLines); n > 1 && newLines[n-1] == "" {
			newLines = newLines[:n-1]
		}
	}
	if b.p.step == Indentation && !b.findShift(where, old, true) {
		return changes, "not uniform"
	}
	b.chooseVerbatim(old, newLines)
	lead := b.leading(where)
	b.everGiven = b.everGiven || lead > 0
	for j := range newLines {
		with := b.partners[j]
		if with.line >= len(old) {
			with = partner{line: -1}
		}
		if b.within && with.equal && (j == 0) != (with.line == 0) {
			with.equal = false
		}
		line := newLines[j]
		if j == 0 && lead > 0 {
			line = line[lead:]
			with.equal = with.line == 0 && line == old[0]
		}
		if b.verbatim != verbatimNone {
			b.contentVerbatim(j, line, &with)
		} else {
			b.content(j, line, old, with)
		}
		if j < len(newLines)-1 {
			b.end(with)
		}
	}
	b.flush(where.end)
	return b.changes, b.failed
}

// word is at for a text within a line, without allocating strings.
func (b *builder) word(where place, changes []textdiff.Change) []textdiff.Change {
	old, newLines := b.p.old[0], b.p.new[0]
	if old == newLines {
		return changes
	}
	if lead := b.leading(where); lead > 0 {
		newLines, b.everGiven = newLines[lead:], true
	}
	head, tail := commonEnds(old, newLines)
	return append(changes, textdiff.Change{Start: where.start + head, End: where.end - tail, New: newLines[head : len(newLines)-tail]})
}

// fragments splits a place into lines.
func (b *builder) fragments(where place) []fragment {
	var parts []fragment
	for at := where.start; ; {
		end := where.end
		if n := bytes.IndexByte(b.f.Text[at:end], b.f.EOL); n >= 0 {
			end = at + n + 1
		}
		line := b.f.Text[at:end]
		part := fragment{start: at, end: end}
		part.blanks = at + len(b.f.Content(line))
		part.text = part.blanks
		i := len(parts)
		if b.p.step >= Trailing && i < len(b.p.old) && len(trimRight([]byte(b.p.old[i]))) == len(b.p.old[i]) {
			part.text = at + len(trimRight(b.f.Text[at:part.blanks]))
		}
		ended := end > at && b.f.Text[end-1] == b.f.EOL
		parts = append(parts, part)
		at = end
		if !ended || len(parts) == len(b.p.old) {
			return parts
		}
	}
}

// content writes the text of new line j, given as line.
func (b *builder) content(j int, line string, old []string, with partner) {
	if b.within && j == 0 && !with.equal {
		line = b.behind(line)
	}
	if with.line < 0 || b.p.step == Indentation && isBlank(line) != isBlank(old[with.line]) {
		b.put(b.indented(j, line)) // no old line gives its indentation
		return
	}
	part := b.part[with.line]
	if with.equal {
		end := part.text
		if with.line == len(old)-1 || j == len(b.p.new)-1 && b.p.step >= Trailing && b.f.AtLineEnd(b.where.end) {
			end = part.blanks
		}
		b.keep(part.start, end)
		return
	}
	was := old[with.line]
	if b.p.step >= Trailing {
		was = was[:len(trimRight([]byte(was)))]
	}
	from := part.start
	to := from + len(trimRight(b.f.Text[from:part.text]))
	if b.p.step < Trailing {
		to = part.text
	}
	if b.p.step == Indentation && !(b.within && (j == 0 || with.line == 0)) {
		n, m := indentSize(was), indentSize(line)
		size := indentSize(b.f.Text[from:to])
		if was[:n] == line[:m] {
			b.keep(from, from+size)
		} else {
			b.put(b.indented(j, line[:m]))
		}
		from, was, line = from+size, was[n:], line[m:]
	} else if b.within && (j == 0) != (with.line == 0) {
		b.put(b.indented(j, line))
		return
	}
	b.rewrite(from, to, was, line)
}

// rewrite writes the new line and keeps the file's bytes for text that the old
// and the new line share.
func (b *builder) rewrite(from, to int, was, line string) {
	if b.p.step < Punctuation || !b.tokens(from, to, was, line) {
		head, tail := 0, 0
		if string(b.f.Text[from:to]) == was {
			head, tail = commonEnds(was, line)
		}
		b.keep(from, from+head)
		b.put(line[head : len(line)-tail])
		b.keep(to-tail, to)
	}
}

// put writes new text.
func (b *builder) put(text string) { b.pending.WriteString(text) }

// keep leaves a range of the file unchanged. Text before it that was not kept
// is removed.
func (b *builder) keep(start, end int) {
	if start < end {
		b.flush(start)
		b.cursor = end
	}
}

// flush makes a change of the pending new text and of the text not kept, up to
// a position.
func (b *builder) flush(to int) {
	if to > b.cursor || b.pending.Len() > 0 {
		if text := b.pending.String(); text != string(b.f.Text[b.cursor:to]) {
			b.changes = append(b.changes, textdiff.Change{Start: b.cursor, End: to, New: text})
		}
		b.pending.Reset()
	}
	b.cursor = to
}
