package approve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/visible"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// FormatJSON formats JSON for a person: members in order, one on each line, numbers as
// written, and texts decoded. Invisible characters and look-alikes are escaped. A line
// break in a text is shown as \n followed by a line break, so that no part of a text
// can be mistaken for the structure around it.
func FormatJSON(raw json.RawMessage) string { return format(raw, false) }

// FormatJSONLine does the same as FormatJSON on one line.
func FormatJSONLine(raw json.RawMessage) string { return format(raw, true) }

// EscapeInvisible escapes the invisible characters of a text except line breaks and tabs.
func EscapeInvisible(text string) string { return visible.Text(text) }

// EscapeInvisibleLine does the same as EscapeInvisible, on one line.
func EscapeInvisibleLine(text string) string { return visible.Line(text) }

// formatter formats a JSON text.
type formatter struct {
	b    strings.Builder
	flat bool // on one line
}

// format returns JSON as people read it, with flat on one line. Text that is not JSON,
// or is nested too deep, is returned as one visible line.
func format(raw json.RawMessage, flat bool) string {
	d := formatter{flat: flat}
	raw = bytes.TrimSpace(raw)
	if jsonrpc.Valid(raw) != nil || !d.writeValue(raw, 0) {
		return EscapeInvisibleLine(string(raw))
	}
	return d.b.String()
}

// maxShownDepth bounds nesting; deeper values are shown as written.
const maxShownDepth = 200

// writeValue writes a value. It returns false if the value is malformed or nested deeper
// than maxShownDepth.
func (d *formatter) writeValue(raw json.RawMessage, depth int) bool {
	if depth > maxShownDepth || len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case '{':
		members, err := jsonrpc.Members(raw)
		if err != nil {
			return false
		}
		d.b.WriteByte('{')
		for i, m := range members {
			d.beginItem(i, depth+1)
			d.writeText(m.Name, depth+1)
			d.b.WriteByte(':')
			if !d.flat {
				d.b.WriteByte(' ')
			}
			if !d.writeValue(m.Value, depth+1) {
				return false
			}
		}
		d.endItems(len(members), depth, '}')
		return true
	case '[':
		items, err := jsonrpc.Items(raw)
		if err != nil {
			return false
		}
		d.b.WriteByte('[')
		for i, item := range items {
			d.beginItem(i, depth+1)
			if !d.writeValue(item, depth+1) {
				return false
			}
		}
		d.endItems(len(items), depth, ']')
		return true
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return false
		}
		d.writeText(text, depth)
		return true
	}
	d.b.Write(raw)
	return true
}

// beginItem begins item i of a list or object: it writes the comma and begins a line.
func (d *formatter) beginItem(i, depth int) {
	if i > 0 {
		d.b.WriteByte(',')
	}
	d.newLine(depth)
}

// endItems ends a list or object with n items by the bracket with.
func (d *formatter) endItems(n, depth int, with byte) {
	if n > 0 {
		d.newLine(depth)
	}
	d.b.WriteByte(with)
}

// newLine begins a new line with the indentation of depth, unless the text is flat.
func (d *formatter) newLine(depth int) {
	if !d.flat {
		d.b.WriteString("\n" + strings.Repeat("  ", depth))
	}
}

// The longest runs of blanks that are shown unchanged. Longer runs are replaced by
// their length, so that they cannot push the text after them out of sight.
const (
	maxBreaks = 3
	maxSpaces = 24
)

// writeText writes a string in quotes, with invisible characters escaped and long runs of
// blanks replaced by their length. Unless flat, it begins a new line after each newline.
func (d *formatter) writeText(text string, depth int) {
	d.b.WriteByte('"')
	for i := 0; i < len(text); {
		if n := d.replaceBlankRun(text[i:], depth); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '"' || r == '\\':
			d.b.WriteByte('\\')
			d.b.WriteRune(r)
		case visible.IsHidden(r):
			visible.WriteEscaped(&d.b, r)
			if r == '\n' && i+1 < len(text) {
				d.newLine(depth + 2)
			}
		default:
			d.b.WriteRune(r)
		}
		i += size
	}
	d.b.WriteByte('"')
}

// replaceBlankRun writes the length of a long run of blanks at the beginning of text
// instead of the run. It returns the number of replaced bytes; 0: there is no long run.
func (d *formatter) replaceBlankRun(text string, depth int) int {
	blank := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	switch breaks := strings.Count(text[:blank], "\n"); {
	case breaks > maxBreaks:
		end := strings.LastIndexByte(text[:blank], '\n') + 1
		fmt.Fprintf(&d.b, "… %d line breaks …", breaks)
		if end < len(text) {
			d.newLine(depth + 2)
		}
		return end
	case blank-strings.LastIndexByte(text[:blank], '\n')-1 > maxSpaces && breaks == 0:
		fmt.Fprintf(&d.b, "… %d spaces …", blank)
		return blank
	}
	return 0
}
