package match

import (
	"bytes"
	"slices"
	"strings"
)

// shiftLine returns new line j, given as line, with its indentation shifted to
// the file's. If the indentation is too small, it sets unshiftable.
func (b *changeBuilder) shiftLine(j int, line string) string {
	if b.pattern.step != Indentation || b.startsMidLine && j == 0 || strings.TrimSpace(line) == "" && b.pattern.new[j] == line {
		return line
	}
	n := indentSize(line)
	if b.shift.isFileIndent(line[:n]) {
		return line
	}
	indent, ok := b.shift.apply(line[:n])
	if !ok {
		b.unshiftable = b.pattern.new[j]
	}
	return indent + line[n:]
}

// withoutLead returns the first new line for a place that begins after the
// indentation of its line: shifted and without that indentation, if the shift
// would add it; otherwise unchanged.
func (b *changeBuilder) withoutLead(line string) string {
	n, lead := indentSize(line), string(b.file.Text[b.file.LineStart(b.where.start):b.where.start])
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

// chooseShift sets the shift, and indentPairs, from the indentation of the old
// lines in the file. It returns false if no single shift fits all lines.
// findBest asks for the likeliest of several shifts, which matters only for new
// text.
func (b *changeBuilder) chooseShift(where place, old []string, findBest bool) bool {
	b.startsMidLine = where.start > b.file.BodyStart && b.file.Text[where.start-1] != b.file.EOL
	b.leadIsPaired = false
	var dents []indentPair
	for i, line := range old {
		core := strings.TrimSpace(line)
		if core == "" || i == 0 && b.startsMidLine {
			continue
		}
		text := b.file.Text[b.parts[i].start:b.parts[i].blanksEnd]
		dents = append(dents, indentPair{line[:indentSize(line)], string(text[:indentSize(text)]), i})
	}
	b.indentPairs = dents
	if len(dents) == 0 { // a single line, which begins after its indentation
		b.shift = indentShift{}
		return true
	}
	var others func() (model, file []string)
	if findBest {
		others = func() (model, file []string) {
			return append(indents(old), indents(b.pattern.new)...), b.nearbyIndents(where)
		}
	}
	if lead := string(b.file.Text[b.file.LineStart(where.start):where.start]); b.startsMidLine && isBlank(lead) && !isBlank(old[0]) {
		// The first line may have been copied without its indentation,
		// or have none like the others.
		headed := append([]indentPair{{model: "", file: lead}}, dents...)
		if s, ok := commonShift(headed, others); ok {
			b.shift, b.indentPairs, b.leadIsPaired = s, headed, true
			return true
		}
	}
	s, ok := commonShift(dents, others)
	b.shift = s
	return ok
}

// nearbyIndents returns the indentations of the lines at a place and near it.
func (b *changeBuilder) nearbyIndents(where place) []string {
	const beside = 2 << 10
	from := max(b.file.BodyStart, where.start-beside)
	text := b.file.Text[from:min(len(b.file.Text), where.start+beside)]
	all := bytes.Split(text, []byte{b.file.EOL})
	var found []string
	for _, line := range all[1:] {
		if len(bytes.TrimSpace(line)) > 0 {
			found = append(found, string(line[:indentSize(line)]))
		}
	}
	return found
}

// repeatedLeadLength returns the length, in bytes, of the indentation that
// already precedes the place in the file and that the new text's first line
// repeats. A model that omits indentation from the old text, or a part of it,
// may have it in the new text. If nothing else changes, the edit is meant to
// indent the line further, and the length is 0.
func (b *changeBuilder) repeatedLeadLength(where place) int {
	old, newLines := b.pattern.old, b.pattern.new
	n := indentSize(newLines[0])
	if n == 0 || b.strict || b.pattern.step == Indentation || isBlank(newLines[0]) || isBlank(old[0]) {
		return 0
	}
	m, start := indentSize(old[0]), where.start
	for start > b.file.BodyStart && (b.file.Text[start-1] == ' ' || b.file.Text[start-1] == '\t') {
		if start--; where.start-start > n {
			return 0
		}
	}
	lead := string(b.file.Text[start:where.start])
	if lead == "" || start > b.file.BodyStart && b.file.Text[start-1] != b.file.EOL || lead+old[0][:m] != newLines[0][:n] {
		return 0
	}
	if newLines[0][n:] != old[0][m:] {
		return len(lead)
	}
	was, is := indents(old[1:]), indents(newLines[1:])
	if len(was) == 0 || len(is) == 0 || shortestIndent(was) != shortestIndent(is) || slices.Equal(old[1:], newLines[1:]) {
		return 0
	}
	return len(lead)
}
