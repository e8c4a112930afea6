package match

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

// difference is the first differing line of a text and a block.
type difference struct {
	oldLine   int // index of the line of old_string; -1: the file has an additional line
	blockLine int // index in the block; -1: the file lacks the line
}

// firstDifference returns where an aligned block first differs; indented
// reports that only indentation does, which is checked last since it may hide
// the cause. Differences that the ladder ignores do not count, except with
// strict. ok is false if there are no differences.
func (m *matcher) firstDifference(old []string, b linematch.Block) (d difference, indentOnly, ok bool) {
	for _, p := range b.Pairs {
		if p.Wanted < 0 || p.Line < 0 || !m.sameLine(old, p.Wanted, b.Lines[p.Line], true) {
			return difference{p.Wanted, p.Line}, false, true
		}
	}
	for _, p := range b.Pairs {
		if !m.sameLine(old, p.Wanted, b.Lines[p.Line], false) {
			return difference{p.Wanted, p.Line}, true, true
		}
	}
	return difference{}, false, false
}

// plain returns a line without the differences that the ladder ignores.
func (m *matcher) withoutIgnored(line string) string {
	if m.options.Strict {
		return line
	}
	text, _ := foldPunctuation([]byte(line), nil)
	return string(trimTrailingBlanks(text))
}

// sameLine compares line i of a text with a line of the file; the first and the
// last line may be partial.
func (m *matcher) sameLine(old []string, i int, line string, ignoreIndent bool) bool {
	want := m.withoutIgnored(old[i])
	line = m.withoutIgnored(line)
	if ignoreIndent {
		want, line = want[indentSize(want):], line[indentSize(line):]
	}
	switch {
	case want == line:
		return true
	case len(old) == 1:
		return strings.Contains(line, want)
	case i == 0:
		return strings.HasSuffix(line, want)
	case i == len(old)-1:
		return strings.HasPrefix(line, want)
	}
	return false
}

// showDifference writes the difference and its cause, and returns the line's
// number.
func (m *matcher) writeDifference(text *strings.Builder, old []string, b linematch.Block, d difference, indentOnly bool) int {
	if d.blockLine < 0 {
		at := b.FirstLine
		for _, p := range b.Pairs {
			if p.Wanted == d.oldLine {
				break
			}
			if p.Line >= 0 {
				at = b.FirstLine + p.Line + 1
			}
		}
		fmt.Fprintf(text, ". First difference: line %d of old_string is missing before line %d of the file:\n  old_string: %s",
			d.oldLine+1, at, visibleExcerpt(old[d.oldLine], 0))
		if strings.TrimSpace(old[d.oldLine]) == "" {
			text.WriteString("\n  (old_string has an extra empty line)")
		}
		return at
	}
	line := b.Lines[d.blockLine]
	at := b.FirstLine + d.blockLine
	if d.oldLine < 0 {
		fmt.Fprintf(text, ". First difference: line %d of the file is not in old_string:\n  file: %s", at, visibleExcerpt(line, 0))
		if strings.TrimSpace(line) == "" {
			text.WriteString("\n  (the file has an extra empty line)")
		}
		return at
	}
	was := old[d.oldLine]
	if len(old) == 1 || d.oldLine == 0 {
		if n := indentSize(was); n == 0 { // it may begin after the indentation
			line = line[indentSize(line):]
		}
	}
	inFile, inOld := m.differenceOffsets(line, was, indentOnly)
	fmt.Fprintf(text, ". First difference in line %d (line %d of old_string):\n  file:       %s\n  old_string: %s\n  (%s)",
		at, d.oldLine+1, visibleExcerpt(line, inFile), visibleExcerpt(was, inOld), describeDifference(line, was, inFile, inOld))
	return at
}

// alsoDiffers mentions further causes: other indentation, and dots used as a
// placeholder.
func (m *matcher) writeFurtherCauses(text *strings.Builder, old []string, b linematch.Block, indentOnly bool) {
	dots, dent := false, indentOnly
	for _, p := range b.Pairs {
		if p.Wanted < 0 {
			continue
		}
		if p.Line < 0 || !m.sameLine(old, p.Wanted, b.Lines[p.Line], true) {
			dots = dots || strings.Contains(old[p.Wanted], "...") || strings.Contains(old[p.Wanted], "…")
			continue
		}
		if !dent && !m.sameLine(old, p.Wanted, b.Lines[p.Line], false) {
			dent = true
			line := b.Lines[p.Line]
			fmt.Fprintf(text, "\n  (also, the file indents line %d by %s, old_string by %s)", b.FirstLine+p.Line,
				describeIndent(line[:indentSize(line)]), describeIndent(old[p.Wanted][:indentSize(old[p.Wanted])]))
		}
	}
	if dots {
		text.WriteString("\n  (\"...\" matches only itself: old_string must be the file's exact text)")
	}
}

// differAt returns the positions in two lines at which they differ, beyond
// differences that the ladder ignores: after the indentation, unless only that
// differs.
func (m *matcher) differenceOffsets(line, was string, indentOnly bool) (inFile, inOld int) {
	skipFile, skipOld := 0, 0
	if !indentOnly {
		skipFile, skipOld = indentSize(line), indentSize(was)
	}
	line, was = line[skipFile:], was[skipOld:]
	head, _ := commonEnds(line, was)
	inFile, inOld = head, head
	if !m.options.Strict {
		a, _ := foldPunctuation([]byte(line), nil)
		b, _ := foldPunctuation([]byte(was), nil)
		plain, _ := commonEnds(string(a), string(b))
		file, old := unfolder{text: []byte(line)}, unfolder{text: []byte(was)}
		x, ok1 := file.originalOffset(plain)
		y, ok2 := old.originalOffset(plain)
		if ok1 && ok2 && !(x == len(line) && y == len(was)) {
			inFile, inOld = x, y
		}
	}
	return skipFile + inFile, skipOld + inOld
}

// explain describes the kind and the position of a difference.
func describeDifference(file, old string, inFile, inOld int) string {
	const visible = "· is a space, → a tab"
	fileIndent, oldIndent := file[:indentSize(file)], old[:indentSize(old)]
	fileBody, oldBody := strings.TrimSpace(file), strings.TrimSpace(old)
	bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
	switch {
	case fileBody == oldBody && fileIndent != oldIndent:
		return fmt.Sprintf("the file indents it by %s, old_string by %s; %s", describeIndent(fileIndent), describeIndent(oldIndent), visible)
	case fileBody == oldBody:
		return "trailing whitespace differs; " + visible
	case strings.EqualFold(fileBody, oldBody):
		return "only case differs"
	case bare(fileBody) == bare(oldBody):
		return "whitespace differs; " + visible
	}
	column := utf8.RuneCountInString(file[:inFile]) + 1
	a, _ := utf8.DecodeRuneInString(file[inFile:])
	b, _ := utf8.DecodeRuneInString(old[inOld:])
	if inFile < len(file) && inOld < len(old) && (a > unicode.MaxASCII || b > unicode.MaxASCII) {
		return fmt.Sprintf("from character %d on: U+%04X in the file, U+%04X in old_string", column, a, b)
	}
	return fmt.Sprintf("from character %d on; %s", column, visible)
}

// dented describes an indentation.
func describeIndent(indent string) string {
	tabs := strings.Count(indent, "\t")
	blanks := len(indent) - tabs
	switch {
	case indent == "":
		return "nothing"
	case tabs == 0:
		return textfmt.Count(blanks, "space")
	case blanks == 0:
		return textfmt.Count(tabs, "tab")
	}
	return textfmt.Count(tabs, "tab") + " and " + textfmt.Count(blanks, "space")
}
