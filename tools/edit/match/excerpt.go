package match

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// truncateLine returns a line, or the beginning of a line over maxFullLine with
// the size of the rest.
func truncateLine(line []byte) string {
	if len(line) <= maxFullLine {
		return string(line)
	}
	end := maxExcerpt
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s…[%d bytes] (part of the line is enough as old_string)", line[:end], len(line)-end)
}

// maxFullLine bounds the lines that a message shows completely, in bytes. It
// shows about maxExcerpt bytes of a longer line.
const maxFullLine = 1000

// capitalize returns s with its first byte in upper case; s must not be empty.
func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// visibleExcerpt returns the part of a line around a byte offset, with visible
// white space and control characters.
func visibleExcerpt(line string, at int) string {
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

// contextChars is the amount of text shown on each side of a difference, in
// characters.
const contextChars = 60

// lineExcerpt returns the line that begins at start, without its ending. Of a
// line over maxExcerpt it returns the part around focus. Both are offsets in
// the file's text.
func lineExcerpt(f *splice.File, start, focus int) string {
	line := f.Text[start:]
	if at := bytes.IndexByte(line[:min(len(line), maxExcerpt+2)], f.EOL); at >= 0 {
		return string(f.TrimEnding(line[:at+1]))
	}
	if len(line) <= maxExcerpt {
		return string(line)
	}
	from := max(start, focus-maxExcerpt/3)
	end := min(from+maxExcerpt, f.LineEnd(focus))
	for from > start && !utf8.RuneStart(f.Text[from]) {
		from--
	}
	for end < len(f.Text) && !utf8.RuneStart(f.Text[end]) {
		end++
	}
	text := string(f.TrimEnding(f.Text[from:end])) + "…"
	if from > start {
		text = fmt.Sprintf("…%s (from byte %d of the line)", text, from-start+1)
	}
	return text
}

// maxExcerpt bounds the part of a line that a message shows, in bytes.
const maxExcerpt = 200

// linesExcerpt joins at most maxBlockLines lines for a message. It marks
// omitted text with an ellipsis.
func linesExcerpt(lines [][]byte) string {
	var text strings.Builder
	for i, line := range lines {
		if i == maxBlockLines {
			text.WriteString("…")
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(truncateLine(line))
	}
	return text.String()
}
