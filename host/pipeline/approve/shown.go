package approve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Shown is JSON for a person: members in their order, each on a line, numbers
// as they are written, and texts as what they mean, however they are spelt.
// What is not seen, or looks like what it is not, is escaped, and a line break
// in a text is \n and then a line break, so that nothing in a text can be taken
// for what is around it.
func Shown(raw json.RawMessage) string { return draw(raw, false) }

// ShownLine is Shown on one line.
func ShownLine(raw json.RawMessage) string { return draw(raw, true) }

// Visible is a text in which what is not seen is escaped, but line breaks and
// tabs.
func Visible(text string) string {
	if clean(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || !hidden(r) {
			b.WriteRune(r)
			continue
		}
		escape(&b, r)
	}
	return b.String()
}

// VisibleLine is Visible on one line.
func VisibleLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

func clean(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// hidden reports whether a character is not seen as itself: controls, formats
// (zero width, bidi, tags), spaces but the usual one, fillers, private use.
func hidden(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return false
	case r == 0x2800 || r == 0x1d159: // blank, though symbols
		return true
	}
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r)
}

func escape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// drawing is JSON being shown.
type drawing struct {
	b    strings.Builder
	flat bool // on one line
}

func draw(raw json.RawMessage, flat bool) string {
	d := drawing{flat: flat}
	raw = bytes.TrimSpace(raw)
	if jsonrpc.Valid(raw) != nil || !d.value(raw, 0) {
		return VisibleLine(string(raw))
	}
	return d.b.String()
}

// maxDrawn bounds nesting; what is deeper is shown as it is written.
const maxDrawn = 200

func (d *drawing) value(raw json.RawMessage, depth int) bool {
	if depth > maxDrawn || len(raw) == 0 {
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
			d.next(i, depth+1)
			d.text(m.Name, depth+1)
			d.b.WriteByte(':')
			if !d.flat {
				d.b.WriteByte(' ')
			}
			if !d.value(m.Value, depth+1) {
				return false
			}
		}
		d.end(len(members), depth, '}')
		return true
	case '[':
		items, err := jsonrpc.Items(raw)
		if err != nil {
			return false
		}
		d.b.WriteByte('[')
		for i, item := range items {
			d.next(i, depth+1)
			if !d.value(item, depth+1) {
				return false
			}
		}
		d.end(len(items), depth, ']')
		return true
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return false
		}
		d.text(text, depth)
		return true
	}
	d.b.Write(raw)
	return true
}

// next begins one more of several.
func (d *drawing) next(i, depth int) {
	if i > 0 {
		d.b.WriteByte(',')
	}
	d.line(depth)
}

func (d *drawing) end(n, depth int, with byte) {
	if n > 0 {
		d.line(depth)
	}
	d.b.WriteByte(with)
}

func (d *drawing) line(depth int) {
	if !d.flat {
		d.b.WriteString("\n" + strings.Repeat("  ", depth))
	}
}

func (d *drawing) text(text string, depth int) {
	d.b.WriteByte('"')
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			d.b.WriteByte('\\')
			d.b.WriteRune(r)
		case hidden(r):
			escape(&d.b, r)
			if r == '\n' && i+1 < len(text) {
				d.line(depth + 2)
			}
		default:
			d.b.WriteRune(r)
		}
	}
	d.b.WriteByte('"')
}
