package main

import (
	"strings"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// ligatures are single glyphs for several letters, U+FB00 to U+FB06.
var ligatures = [...]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}

// cleanGlyphs removes invisible characters and replaces ligatures by letters,
// so that the text can be searched. Bytes in an unknown encoding are decoded as
// Latin-1.
func cleanGlyphs(text string) string {
	if !utf8.ValidString(text) {
		runes := make([]rune, len(text))
		for i := range len(text) {
			runes[i] = rune(text[i])
		}
		text = string(runes)
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\t', r == '\n', r == '\r', r == 0xa0:
			out.WriteByte(' ')
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0xad:
		case r >= 0xfb00 && int(r-0xfb00) < len(ligatures):
			out.WriteString(ligatures[r-0xfb00])
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// findFont returns the font with a name in the resources; without widths if there is
// none.
func (l *pdfLayout) findFont(name string) *pdfFont {
	if font, ok := l.fonts[name]; ok {
		return font
	}
	value := l.resources.Key("Font").Key(name)
	font := &pdfFont{font: pdf.Font{V: value}, widths: map[int]float64{}, wide: value.Key("Subtype").Name() == "Type0"}
	if font.wide {
		readCIDWidths(font.widths, value.Key("DescendantFonts").Index(0))
	} else {
		first := int(value.Key("FirstChar").Int64())
		widths := value.Key("Widths")
		for i := range min(widths.Len(), 256) {
			font.widths[first+i] = widths.Index(i).Float64()
		}
	}
	l.fonts[name] = font
	return font
}

// readCIDWidths adds the widths in the /W array of a CID font ("first [w w …]" and "first
// last w") to into: thousandths of the font size, by CID. It ignores malformed entries;
// without an array, nothing is added.
func readCIDWidths(into map[int]float64, descendant pdf.Value) {
	table := descendant.Key("W")
	for i := 0; i+1 < table.Len() && len(into) < 1<<16; {
		first, next := int(table.Index(i).Int64()), table.Index(i+1)
		if next.Kind() == pdf.Array {
			for j := range min(next.Len(), 1<<16) {
				into[first+j] = next.Index(j).Float64()
			}
			i += 2
			continue
		}
		width := table.Index(i + 2).Float64()
		for code := first; code <= min(int(next.Int64()), first+1<<16); code++ {
			into[code] = width
		}
		i += 3
	}
}

// pdfFont is a font with its glyph widths.
type pdfFont struct {
	font   pdf.Font
	widths map[int]float64 // in thousandths of the font size, by character code
	wide   bool            // a glyph code has two bytes
}

// stringWidth returns how far a string moves the pen, in text space.
func (l *pdfLayout) stringWidth(raw string) float64 {
	width, step := 0.0, 1
	if l.font.wide {
		step = 2
	}
	for i := 0; i+step <= len(raw); i += step {
		code := int(raw[i])
		if step == 2 {
			code = code<<8 | int(raw[i+1])
		}
		w, ok := l.font.widths[code]
		if !ok {
			w = 500
		}
		width += (w/1000*l.size + l.spacing) * l.scale
	}
	return width
}
