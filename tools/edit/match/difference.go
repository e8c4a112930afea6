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

// near writes the nearest block and its first difference, and returns the
// number of the differing line.
func (m *matcher) near(text *strings.Builder, old []string, b linematch.Block, explained bool) int {
	last := b.First + len(b.Lines) - 1
	what := textfmt.Lines(b.First, last)
	if len(b.Lines) == 1 && len(b.Lines[0]) >= linematch.MaxLine {
		return m.nearWithin(text, old, b)
	}
	at := b.First
	if explained {
		fmt.Fprintf(text, "\nClosest: %s", what)
		if len(old) > 1 {
			fmt.Fprintf(text, ", %d of %d lines match", b.Alike, len(old))
		}
		if d, indented, ok := m.firstDifference(old, b); ok {
			at = m.showDifference(text, old, b, d, indented)
			m.alsoDiffers(text, old, b, indented)
		} else {
			text.WriteString(". Each line was found, but not as one block.")
		}
	}
	from, to := 0, len(b.Lines)
	if to > maxBlock {
		from = max(0, min(at-b.First-maxBlock/4, to-maxBlock))
		to = from + maxBlock
		fmt.Fprintf(text, "\nLines %d-%d of the file (a shorter old_string is easier to match):\n", b.First+from, b.First+to-1)
	} else {
		fmt.Fprintf(text, "\n%s of the file, to copy:\n", capital(what))
	}
	for _, line := range b.Lines[from:to] {
		text.WriteString(clip([]byte(line)) + "\n")
	}
	cut := strings.TrimSuffix(text.String(), "\n")
	text.Reset()
	text.WriteString(cut)
	return at
}

// maxCopied bounds the lines that are shown completely, in bytes. Of a longer
// line maxShown bytes are shown.
const maxCopied = 1000

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// clip returns a line, or the beginning of a long line.
func clip(line []byte) string {
	if len(line) <= maxCopied {
		return string(line)
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s…[%d bytes] (part of the line is enough as old_string)", line[:end], len(line)-end)
}

// maxWanted bounds the text that is searched within a long line, in bytes.
const maxWanted = 2000

// nearWithin writes the part of a long line that is most similar to the text.
func (m *matcher) nearWithin(text *strings.Builder, old []string, b linematch.Block) int {
	start := m.f.Body + b.Start[0]
	line := m.f.Content(m.f.Text[start:m.f.LineEnd(start)])
	wanted := strings.Join(old, "\n")
	wanted = wanted[:min(len(wanted), maxWanted)]
	from, to, ok := linematch.Within(linematch.Text{Body: line, Checker: m.checker}, wanted)
	if !ok {
		from, to = 0, 0
	}
	from, to = max(0, from-contextChars), min(len(line), to+contextChars)
	if to-from > maxCopied {
		at := from
		for at < to && at-from < len(wanted) && line[at] == wanted[at-from] {
			at++
		}
		from, to = max(from, at-maxShown/2), min(to, at+maxShown/2)
	}
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	fmt.Fprintf(text, "\nClosest: line %d (%d bytes), from byte %d. Text there, to copy from:\n%s", b.First, len(line), from+1, line[from:to])
	return b.First
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

// contextChars is the number of characters shown on each side of a difference.
const contextChars = 60

// window returns the part of a line around a position, with visible white
// space.
func window(line string, at int) string {
	runes := []rune(line[:min(len(line), 1<<20)])
	at = utf8.RuneCountInString(line[:min(at, len(line), 1<<20)])
	from, to := max(0, at-contextChars), min(len(runes), at+contextChars+20)
	var out strings.Builder
	if from > 0 {
		out.WriteString("…")
	}
	for _, r := range runes[from:to] {
		switch {
		case r == ' ':
			out.WriteString("·")
		case r == '\t':
			out.WriteString("→")
		case r == '\r':
			out.WriteString(`\r`)
		case r != utf8.RuneError && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) || unicode.Is(unicode.Mn, r)):
			fmt.Fprintf(&out, "<U+%04X>", r)
		default:
			out.WriteRune(r)
		}
	}
	if to < len(runes) {
		out.WriteString("…")
	}
	if out.Len() == 0 {
		return "(an empty line)"
	}
	return out.String()
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
