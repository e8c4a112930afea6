package match

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/tools/edit/linematch"
)

// difference is the first line in which an old text and a block of the file
// differ.
type difference struct {
	oldLine   int // index of the old text's line; -1: the file has an additional line
	blockLine int // index in the block; -1: the file lacks the line
}

// firstDifference returns where an aligned block first differs from the old
// text. Differences that the ladder ignores do not count, except with strict.
// indentOnly means that the lines differ only in indentation; such lines are
// reported only if nothing else differs, since they may hide the cause. ok is
// false if there is no difference.
func (m *matcher) firstDifference(old []string, b linematch.Block) (d difference, indentOnly, ok bool) {
	for _, p := range b.Pairs {
		if p.Wanted < 0 || p.Line < 0 || !m.isSameLine(old, p.Wanted, b.Lines[p.Line], true) {
			return difference{p.Wanted, p.Line}, false, true
		}
	}
	for _, p := range b.Pairs {
		if !m.isSameLine(old, p.Wanted, b.Lines[p.Line], false) {
			return difference{p.Wanted, p.Line}, true, true
		}
	}
	return difference{}, false, false
}

// withoutIgnored returns a line without the differences that the ladder ignores
// before the step Indentation.
func (m *matcher) withoutIgnored(line string) string {
	if m.options.Strict {
		return line
	}
	text, _ := foldPunctuation([]byte(line), nil)
	return string(trimTrailingBlanks(text))
}

// isSameLine reports whether line i of an old text matches a line of the file.
// The first and the last line of the old text may match a part of the file's
// line. ignoreIndent ignores the indentation of both.
func (m *matcher) isSameLine(old []string, i int, line string, ignoreIndent bool) bool {
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

// writeDifference adds the difference d and its cause to text, and returns the
// number of the file's line.
func (m *matcher) writeDifference(text *strings.Builder, old []string, b linematch.Block, d difference, indentOnly bool) (lineNumber int) {
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

// writeFurtherCauses adds to text what else keeps the old text from matching
// the block, besides the first difference: other indentation, unless indentOnly
// says that the first difference is that, and dots used as a placeholder.
func (m *matcher) writeFurtherCauses(text *strings.Builder, old []string, b linematch.Block, indentOnly bool) {
	dots, dent := false, indentOnly
	for _, p := range b.Pairs {
		if p.Wanted < 0 {
			continue
		}
		if p.Line < 0 || !m.isSameLine(old, p.Wanted, b.Lines[p.Line], true) {
			dots = dots || strings.Contains(old[p.Wanted], "...") || strings.Contains(old[p.Wanted], "…")
			continue
		}
		if !dent && !m.isSameLine(old, p.Wanted, b.Lines[p.Line], false) {
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

// differenceOffsets returns the byte offsets in two lines at which they differ.
// Differences that the ladder ignores do not count, except with strict.
// Indentation counts only with indentOnly.
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

// describeDifference describes the kind and the position of the difference
// between a line of the file and a line of the old text, which begins at the
// byte offsets inFile and inOld.
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

// describeIndent returns "2 tabs", "4 spaces", "nothing" and the like.
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
