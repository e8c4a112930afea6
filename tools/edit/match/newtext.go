package match

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

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

// partner is the old line that a new line replaces; -1: none.
type partner struct {
	line  int
	equal bool
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

// neighbour returns the line ending at the place: that of its first line, or of
// the line before. It is cached for further places in a long line.
func (b *builder) neighbour() string {
	at := b.where.start
	if at < b.line.start || at >= b.line.end {
		b.line = place{b.f.LineStart(at), b.f.LineEnd(at)}
		b.lineEnd = b.endingOf(b.line)
		if b.lineEnd == "" && b.line.start > b.f.Body {
			b.lineEnd = b.endingOf(place{b.f.LineStart(b.line.start - 1), b.line.start})
		}
		if b.lineEnd == "" {
			b.lineEnd = string(b.f.EOL)
		}
	}
	return b.lineEnd
}

func (b *builder) endingOf(line place) string {
	text := b.f.Text[line.start:line.end]
	return string(text[len(b.f.Content(text)):])
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

// indented returns a new line with the file's indentation.
func (b *builder) indented(j int, line string) string {
	if b.p.step != Indentation || b.within && j == 0 || strings.TrimSpace(line) == "" && b.p.new[j] == line {
		return line
	}
	n := indentSize(line)
	if b.shift.foreign(line[:n]) {
		return line
	}
	indent, ok := b.shift.apply(line[:n])
	if !ok {
		b.failed = b.p.new[j]
	}
	return indent + line[n:]
}

// behind returns the first new line for a place that begins after its line's
// indentation: without that indentation, if the shift would add it.
func (b *builder) behind(line string) string {
	n, lead := indentSize(line), string(b.f.Text[b.f.LineStart(b.where.start):b.where.start])
	if none, ok := b.shift.apply(""); n == 0 || !ok || none != lead {
		return line
	}
	indent, ok := b.shift.apply(line[:n])
	rest, longer := strings.CutPrefix(indent, lead)
	if !ok || !longer {
		return line
	}
	return rest + line[n:]
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

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

// commonEnds returns the lengths of the common prefix and suffix of two lines
// in bytes, without splitting characters.
func commonEnds(a, b string) (head, tail int) {
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for head > 0 && (head < len(a) && !utf8.RuneStart(a[head]) || head < len(b) && !utf8.RuneStart(b[head])) {
		head--
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(a[len(a)-tail]) {
		tail--
	}
	return head, tail
}

// tokens is rewrite by words and signs, for files whose punctuation differs
// from the old line's. It writes nothing and returns false if a word of the old
// line cannot be located in the file.
func (b *builder) tokens(from, to int, was, line string) bool {
	a, c := words(was), words(line)
	starts := make([]int, len(a)+1) // of each old word, in the file
	u := unfolder{text: b.f.Text[from:to]}
	plain := 0
	for i, word := range a {
		at, ok := u.find(plain)
		if !ok {
			return false
		}
		starts[i] = from + at
		short, _ := fold([]byte(word), nil)
		plain += len(short)
	}
	at, ok := u.find(plain)
	if !ok || from+at != to {
		return false
	}
	starts[len(a)] = to
	j := 0
	for _, run := range append(textdiff.Align(a, c, b.stop), textdiff.Run{A: len(a), B: len(c)}) {
		b.put(strings.Join(c[j:run.B], ""))
		if run.N > 0 {
			b.keep(starts[run.A], starts[run.A+run.N])
		}
		j = run.B + run.N
	}
	return true
}

// words splits a line into words, runs of blanks or of points, and single
// signs.
func words(line string) []string {
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 1
		case r == ' ' || r == '\t':
			return 2
		case r == '.':
			return 3
		}
		return 0
	}
	var all []string
	for len(line) > 0 {
		r, n := utf8.DecodeRuneInString(line)
		for k := kind(r); k > 0 && n < len(line); {
			next, size := utf8.DecodeRuneInString(line[n:])
			if kind(next) != k {
				break
			}
			n += size
		}
		all = append(all, line[:n])
		line = line[n:]
	}
	return all
}

// end writes the ending of a new line: that of the old line that it replaces,
// or else of the line before. Blanks before the ending are kept on unchanged
// lines only.
func (b *builder) end(with partner) {
	if with.line < 0 || with.line >= len(b.part) || b.part[with.line].end == b.part[with.line].blanks {
		if b.ending == "" {
			b.ending = b.neighbour()
		}
		b.put(b.ending)
		return
	}
	part := b.part[with.line]
	from := part.blanks
	if with.equal {
		from = part.text
	}
	b.keep(from, part.end)
	b.ending = string(b.f.Text[part.blanks:part.end])
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

// findShift finds how the file indents the lines at a place. which asks for the
// best of several possible shifts, which matters only for new text.
func (b *builder) findShift(where place, old []string, which bool) bool {
	b.within = where.start > b.f.Body && b.f.Text[where.start-1] != b.f.EOL
	b.headed = false
	var dents []dent
	for i, line := range old {
		core := strings.TrimSpace(line)
		if core == "" || i == 0 && b.within {
			continue
		}
		text := b.f.Text[b.part[i].start:b.part[i].blanks]
		dents = append(dents, dent{line[:indentSize(line)], string(text[:indentSize(text)]), i})
	}
	b.dents = dents
	if len(dents) == 0 { // a single line, which begins after its indentation
		b.shift = shift{}
		return true
	}
	var others func() (model, file []string)
	if which {
		others = func() (model, file []string) { return append(indents(old), indents(b.p.new)...), b.around(where) }
	}
	if lead := string(b.f.Text[b.f.LineStart(where.start):where.start]); b.within && isBlank(lead) && !isBlank(old[0]) {
		// The first line may have been copied without its indentation,
		// or have none like the others.
		headed := append([]dent{{model: "", file: lead}}, dents...)
		if s, ok := findShift(headed, others); ok {
			b.shift, b.dents, b.headed = s, headed, true
			return true
		}
	}
	s, ok := findShift(dents, others)
	b.shift = s
	return ok
}

// around returns the indentations of lines in and near a place.
func (b *builder) around(where place) []string {
	const beside = 2 << 10
	from := max(b.f.Body, where.start-beside)
	text := b.f.Text[from:min(len(b.f.Text), where.start+beside)]
	all := bytes.Split(text, []byte{b.f.EOL})
	var found []string
	for _, line := range all[1:] {
		if len(bytes.TrimSpace(line)) > 0 {
			found = append(found, string(line[:indentSize(line)]))
		}
	}
	return found
}
