package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// theme is the set of colours of one version of a picture.
type theme struct {
	name                                     string // "light" or "dark": part of the file name
	background, border, text, muted          string
	accent, bar                              string // bars of toolroom, bars of other programs
	prompt, added, removed, refused, heading string // lines of a session
}

// themes returns the versions that each picture is drawn in.
func themes() []theme {
	return []theme{
		{name: "light", background: "#ffffff", border: "#d1d9e0", text: "#1f2328", muted: "#59636e",
			accent: "#0969da", bar: "#afb8c1",
			prompt: "#8250df", added: "#116329", removed: "#a40e26", refused: "#a40e26", heading: "#0550ae"},
		{name: "dark", background: "#0d1117", border: "#3d444d", text: "#f0f6fc", muted: "#9198a1",
			accent: "#4493f8", bar: "#656c76",
			prompt: "#d2a8ff", added: "#7ee787", removed: "#ffa198", refused: "#ffa198", heading: "#79c0ff"},
	}
}

// Fonts of the reader's system; nothing is loaded.
const (
	monospace = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
	sansSerif = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
)

// image collects an SVG of a size in pixels.
type image struct{ bytes.Buffer }

// newImage begins an image with a background and a frame; title and
// description are read to people who cannot see it.
func newImage(width, height float64, font string, t theme, title, description string) *image {
	m := &image{}
	m.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img" aria-labelledby="title desc" font-family="%s">`,
		width, height, width, height, font)
	m.printf(`<title id="title">%s</title>`, escape(title))
	m.printf(`<desc id="desc">%s</desc>`, escape(description))
	m.printf(`<rect x="0.5" y="0.5" width="%g" height="%g" rx="8" fill="%s" stroke="%s"/>`, width-1, height-1, t.background, t.border)
	return m
}

func (m *image) printf(format string, args ...any) { fmt.Fprintf(&m.Buffer, format+"\n", args...) }

// bytes ends the image and returns it.
func (m *image) bytes() []byte {
	m.printf("</svg>")
	return m.Bytes()
}

// escape returns text for the content of an element.
func escape(text string) string {
	var out strings.Builder
	xml.EscapeText(&out, []byte(text)) //nolint:errcheck // a Builder takes everything
	return out.String()
}
