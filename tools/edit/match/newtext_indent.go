package match

import (
	"bytes"
	"slices"
	"strings"
)

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

// leading returns the length of the part of the new text's first line that
// already precedes the place. A model that omits indentation from the old text,
// or a part of it, may have it in the new text. If nothing else changes, the
// edit is meant to indent the line further, and leading returns 0.
func (b *builder) leading(where place) int {
	old, newLines := b.p.old, b.p.new
	n := indentSize(newLines[0])
	if n == 0 || b.literal || b.p.step == Indentation || isBlank(newLines[0]) || isBlank(old[0]) {
		return 0
	}
	m, start := indentSize(old[0]), where.start
	for start > b.f.Body && (b.f.Text[start-1] == ' ' || b.f.Text[start-1] == '\t') {
		if start--; where.start-start > n {
			return 0
		}
	}
	lead := string(b.f.Text[start:where.start])
	if lead == "" || start > b.f.Body && b.f.Text[start-1] != b.f.EOL || lead+old[0][:m] != newLines[0][:n] {
		return 0
	}
	if newLines[0][n:] != old[0][m:] {
		return len(lead)
	}
	was, is := indents(old[1:]), indents(newLines[1:])
	if len(was) == 0 || len(is) == 0 || shortest(was) != shortest(is) || slices.Equal(old[1:], newLines[1:]) {
		return 0
	}
	return len(lead)
}
