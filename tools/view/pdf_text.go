package main

import (
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

// pdfPageText returns a page's text in drawing order, at most about room bytes:
// with a new line where the pen moves up or down, and a space where it jumps to
// the right. fault describes the error that ended the text early; "": none.
func pdfPageText(page pdf.Page, room int) (text, fault string) {
	layout := &pdfLayout{room: room, resources: inheritedValue(page.V, "Resources")}
	defer func() {
		if x := recover(); x != nil {
			text, fault = layout.text(), shortMessage(x)
		}
	}()
	if contents := page.V.Key("Contents"); contents.Kind() == pdf.Stream || contents.Kind() == pdf.Array {
		layout.interpret(contents, 0)
	}
	return layout.text(), ""
}

// inheritedValue returns the value of a key in a page or its nearest parent.
// The number of steps is bounded, since parents may form a cycle.
func inheritedValue(node pdf.Value, key string) pdf.Value {
	for range 64 {
		if value := node.Key(key); value.Kind() != pdf.Null {
			return value
		}
		node = node.Key("Parent")
	}
	return pdf.Value{}
}

// matrix is [a b c d e f] of the PDF specification, 8.3.3.
type matrix [6]float64

// identity is the matrix that changes nothing.
var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the transformation that applies m, then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// pdfLayout interprets content streams and writes their text; see PDF 32000-1,
// section 9.4.
type pdfLayout struct {
	out       strings.Builder
	room      int // bytes of text after which operators are ignored
	resources pdf.Value
	fonts     map[string]*pdfFont

	ctm, tm, line matrix   // transformations of the page, of the text and of its line
	saved         []matrix // by operator q
	font          *pdfFont
	size, leading float64 // font size and line height
	spacing       float64 // Tc
	scale         float64 // Tz; 1 is normal

	penX, penY float64 // end of the last glyph, in page space
	height     float64 // height of the last glyphs, in page space
	started    bool    // a glyph was written
}

// text returns the text without spaces at the ends of lines.
func (l *pdfLayout) text() string {
	lines := strings.Split(l.out.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// interpret runs the operators of a content stream. depth is the number of
// enclosing forms.
func (l *pdfLayout) interpret(stream pdf.Value, depth int) {
	if depth == 0 {
		l.ctm, l.tm, l.line, l.scale = identity, identity, identity, 1
		l.fonts = map[string]*pdfFont{}
	}
	pdf.Interpret(stream, func(stack *pdf.Stack, op string) {
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		if l.out.Len() < l.room {
			l.applyOperator(op, args, depth)
		}
	})
}

// numberArg returns the i-th argument, or 0 if it is missing or not a number.
func numberArg(args []pdf.Value, i int) float64 {
	if i < len(args) {
		return args[i].Float64()
	}
	return 0
}

// matrixArg returns the first six arguments as a matrix.
func matrixArg(args []pdf.Value) (m matrix) {
	for i := range m {
		m[i] = numberArg(args, i)
	}
	return m
}

// applyOperator runs an operator of the content stream. depth counts the forms around it.
func (l *pdfLayout) applyOperator(op string, args []pdf.Value, depth int) {
	switch op {
	case "q":
		if len(l.saved) < 1000 {
			l.saved = append(l.saved, l.ctm)
		}
	case "Q":
		if n := len(l.saved); n > 0 {
			l.ctm, l.saved = l.saved[n-1], l.saved[:n-1]
		}
	case "cm":
		l.ctm = matrixArg(args).mul(l.ctm)
	case "BT":
		l.tm, l.line = identity, identity
	case "Tm":
		l.tm = matrixArg(args)
		l.line = l.tm
	case "TD":
		l.leading = -numberArg(args, 1)
		l.moveLine(numberArg(args, 0), numberArg(args, 1))
	case "Td":
		l.moveLine(numberArg(args, 0), numberArg(args, 1))
	case "T*":
		l.moveLine(0, -l.leading)
	case "TL":
		l.leading = numberArg(args, 0)
	case "Tc":
		l.spacing = numberArg(args, 0)
	case "Tz":
		l.scale = numberArg(args, 0) / 100
	case "Tf":
		if len(args) == 2 {
			l.font, l.size = l.findFont(args[0].Name()), args[1].Float64()
		}
	case "Do":
		l.drawForm(args, depth)
	default:
		l.showText(op, args)
	}
}

// showText runs an operator that shows text; it ignores others.
func (l *pdfLayout) showText(op string, args []pdf.Value) {
	if len(args) == 0 {
		return
	}
	last := args[len(args)-1]
	switch op {
	case "'", "\"":
		l.moveLine(0, -l.leading)
		l.writeString(last.RawString())
	case "Tj":
		l.writeString(last.RawString())
	case "TJ":
		for i := range last.Len() {
			if item := last.Index(i); item.Kind() == pdf.String {
				l.writeString(item.RawString())
			} else {
				l.tm = matrix{1, 0, 0, 1, -item.Float64() / 1000 * l.size * l.scale, 0}.mul(l.tm)
			}
		}
	}
}

// moveLine begins a line at a distance from the beginning of the current one.
func (l *pdfLayout) moveLine(x, y float64) {
	l.line = matrix{1, 0, 0, 1, x, y}.mul(l.line)
	l.tm = l.line
}

// drawForm draws a form XObject, in which some programs store whole pages. depth counts
// the forms around it; it ignores forms nested too deeply.
func (l *pdfLayout) drawForm(args []pdf.Value, depth int) {
	if len(args) != 1 || depth > 4 {
		return
	}
	object := l.resources.Key("XObject").Key(args[0].Name())
	if object.Kind() != pdf.Stream || object.Key("Subtype").Name() != "Form" {
		return
	}
	outer := *l
	if own := object.Key("Resources"); own.Kind() == pdf.Dict {
		l.resources, l.fonts = own, map[string]*pdfFont{}
	}
	if m := object.Key("Matrix"); m.Len() == 6 {
		var values []pdf.Value
		for i := range 6 {
			values = append(values, m.Index(i))
		}
		l.ctm = matrixArg(values).mul(l.ctm)
	}
	l.interpret(object, depth+1)
	l.resources, l.fonts, l.ctm, l.saved = outer.resources, outer.fonts, outer.ctm, outer.saved
	l.tm, l.line, l.font, l.size = outer.tm, outer.line, outer.font, outer.size
}

// writeString writes a string and moves the pen past it.
func (l *pdfLayout) writeString(raw string) {
	if l.font == nil || raw == "" {
		return
	}
	text := cleanGlyphs(l.font.font.Encoder().Decode(raw))
	at := l.tm.mul(l.ctm)
	height := math.Abs(l.size) * math.Hypot(at[2], at[3])
	l.writeGap(at, height)
	l.out.WriteString(text)
	l.tm = matrix{1, 0, 0, 1, l.stringWidth(raw), 0}.mul(l.tm)
	end := l.tm.mul(l.ctm)
	l.penX, l.penY, l.height, l.started = end[4], end[5], height, true
}

// writeGap writes a space or line breaks according to the distance from the pen
// to the next string.
func (l *pdfLayout) writeGap(at matrix, height float64) {
	if !l.started {
		return
	}
	unit := max(min(height, l.height), 0.01)
	// Distances along and across the writing direction.
	length := max(math.Hypot(at[0], at[1]), 1e-9)
	dx, dy := at[4]-l.penX, at[5]-l.penY
	along := (dx*at[0] + dy*at[1]) / length
	across := (dy*at[0] - dx*at[1]) / length
	so := l.out.String()
	switch {
	case math.Abs(across) > 1.9*unit:
		l.out.WriteString("\n\n")
	case math.Abs(across) > 0.5*unit, along < -2*unit:
		l.out.WriteString("\n")
	case along > 0.17*unit && !strings.HasSuffix(so, " ") && !strings.HasSuffix(so, "\n"):
		l.out.WriteString(" ")
	}
}
