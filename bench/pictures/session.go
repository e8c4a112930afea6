package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	columns    = 112 // characters in a line
	charWidth  = 7.5
	lineHeight = 18.0
	fontSize   = 12.5
	margin     = 18.0
	barHeight  = 34.0
)

// promptMark begins a line of the recording that was typed.
const promptMark = "$ "

// drawSession draws a recorded session as a terminal shows it.
func drawSession(session string, t theme) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(session, "\n"), "\n")
	width := 2*margin + columns*charWidth
	m := newImage(width, barHeight+2*margin+float64(len(lines))*lineHeight-6, monospace, t,
		"A terminal session with toolroom", "The commands, and what they print: "+strings.Join(lines, "\n"))
	for i := range 3 {
		m.printf(`<circle cx="%g" cy="%g" r="5.5" fill="%s"/>`, margin+6+float64(i)*18, barHeight/2+1, t.border)
	}
	m.printf(`<text x="%g" y="%g" font-size="12" text-anchor="middle" fill="%s">toolroom</text>`, width/2, barHeight/2+5, t.muted)
	m.printf(`<path d="M0.5 %gH%g" stroke="%s"/>`, barHeight, width-0.5, t.border)
	m.printf(`<g font-size="%g" xml:space="preserve">`, fontSize)
	for i, line := range lines {
		line = strings.ReplaceAll(line, "\t", "    ")
		n := utf8.RuneCountInString(line)
		if n > columns {
			return nil, fmt.Errorf("line %d has %d characters, more than %d", i+1, n, columns)
		}
		if n == 0 {
			continue
		}
		y := barHeight + margin + float64(i)*lineHeight + 10
		if typed, ok := strings.CutPrefix(line, promptMark); ok {
			m.line(margin, y, strings.TrimSpace(promptMark), t.prompt, "bold")
			m.line(margin+2*charWidth, y, typed, t.text, "bold")
			continue
		}
		m.line(margin, y, line, colour(line, t), "normal")
	}
	m.printf(`</g>`)
	return m.bytes(), nil
}

// line writes characters in columns, whatever font the reader has.
func (m *image) line(x, y float64, text, fill, weight string) {
	indent := len(text) - len(strings.TrimLeft(text, " "))
	text = text[indent:]
	m.printf(`<text x="%g" y="%g" textLength="%g" lengthAdjust="spacingAndGlyphs" font-weight="%s" fill="%s">%s</text>`,
		x+float64(indent)*charWidth, y, float64(utf8.RuneCountInString(text))*charWidth, weight, fill, escape(text))
}

// colour returns the colour of a line that a command printed.
func colour(line string, t theme) string {
	switch {
	case strings.HasPrefix(line, "@@"):
		return t.muted
	case strings.HasPrefix(line, "+"):
		return t.added
	case strings.HasPrefix(line, "-"):
		return t.removed
	case strings.HasSuffix(line, "Permission denied"), strings.HasSuffix(line, "Read-only file system"):
		return t.refused
	case strings.HasPrefix(line, "exit "):
		return t.heading
	}
	return t.text
}
