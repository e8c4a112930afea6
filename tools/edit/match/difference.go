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
	wanted int // index of the line of old_string; -1: the file has an additional line
	line   int // index in the block; -1: the file lacks the line
}

// firstDifference returns where an aligned block first differs; indented
// reports that only indentation does, which is checked last since it may hide
// the cause. Differences that the ladder ignores do not count, except with
// strict. ok is false if there are no differences.
func (m *matcher) firstDifference(old []string, b linematch.Block) (d difference, indented, ok bool) {
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
func (m *matcher) plain(line string) string {
	if m.o.Strict {
		return line
	}
	text, _ := fold([]byte(line), nil)
	return string(trimRight(text))
}

// sameLine compares line i of a text with a line of the file; the first and the
// last line may be partial.
func (m *matcher) sameLine(old []string, i int, line string, anyIndent bool) bool {
	want := m.plain(old[i])
	line = m.plain(line)
	if anyIndent {
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
func (m *matcher) showDifference(text *strings.Builder, old []string, b linematch.Block, d difference, indented bool) int {
	if d.line < 0 {
		at := b.First
		for _, p := range b.Pairs {
			if p.Wanted == d.wanted {
				break
			}
			if p.Line >= 0 {
				at = b.First + p.Line + 1
			}
		}
		fmt.Fprintf(text, ". First difference: line %d of old_string is missing before line %d of the file:\n  old_string: %s",
			d.wanted+1, at, window(old[d.wanted], 0))
		if strings.TrimSpace(old[d.wanted]) == "" {
			text.WriteString("\n  (old_string has an extra empty line)")
		}
		return at
	}
	line := b.Lines[d.line]
	at := b.First + d.line
	if d.wanted < 0 {
		fmt.Fprintf(text, ". First difference: line %d of the file is not in old_string:\n  file: %s", at, window(line, 0))
		if strings.TrimSpace(line) == "" {
			text.WriteString("\n  (the file has an extra empty line)")
		}
		return at
	}
	was := old[d.wanted]
	if len(old) == 1 || d.wanted == 0 {
		if n := indentSize(was); n == 0 { // it may begin after the indentation
			line = line[indentSize(line):]
		}
	}
	inFile, inOld := m.differAt(line, was, indented)
	fmt.Fprintf(text, ". First difference in line %d (line %d of old_string):\n  file:       %s\n  old_string: %s\n  (%s)",
		at, d.wanted+1, window(line, inFile), window(was, inOld), explain(line, was, inFile, inOld))
	return at
}

// alsoDiffers mentions further causes: other indentation, and dots used as a
// placeholder.
func (m *matcher) alsoDiffers(text *strings.Builder, old []string, b linematch.Block, indented bool) {
	dots, dent := false, indented
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
			fmt.Fprintf(text, "\n  (also, the file indents line %d by %s, old_string by %s)", b.First+p.Line,
				dented(line[:indentSize(line)]), dented(old[p.Wanted][:indentSize(old[p.Wanted])]))
		}
	}
	if dots {
		text.WriteString("\n  (\"...\" matches only itself: old_string must be the file's exact text)")
	}
}

// differAt returns the positions in two lines at which they differ, beyond
// differences that the ladder ignores: after the indentation, unless only that
// differs.
func (m *matcher) differAt(line, was string, indented bool) (inFile, inOld int) {
	skipFile, skipOld := 0, 0
	if !indented {
		skipFile, skipOld = indentSize(line), indentSize(was)
	}
	line, was = line[skipFile:], was[skipOld:]
	head, _ := commonEnds(line, was)
	inFile, inOld = head, head
	if !m.o.Strict {
		a, _ := fold([]byte(line), nil)
		b, _ := fold([]byte(was), nil)
		plain, _ := commonEnds(string(a), string(b))
		file, old := unfolder{text: []byte(line)}, unfolder{text: []byte(was)}
		x, ok1 := file.find(plain)
		y, ok2 := old.find(plain)
		if ok1 && ok2 && !(x == len(line) && y == len(was)) {
			inFile, inOld = x, y
		}
	}
	return skipFile + inFile, skipOld + inOld
}

// explain describes the kind and the position of a difference.
func explain(file, old string, inFile, inOld int) string {
	const visible = "· is a space, → a tab"
	fileIndent, oldIndent := file[:indentSize(file)], old[:indentSize(old)]
	fileBody, oldBody := strings.TrimSpace(file), strings.TrimSpace(old)
	bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
	switch {
	case fileBody == oldBody && fileIndent != oldIndent:
		return fmt.Sprintf("the file indents it by %s, old_string by %s; %s", dented(fileIndent), dented(oldIndent), visible)
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
func dented(indent string) string {
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
