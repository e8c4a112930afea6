package main

import (
	"bytes"
	"fmt"
	"image"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// describe returns the metadata of the file without its content.
func (f *opened) describe() *answer {
	kind := "text"
	m := f.meta(kind)
	var text strings.Builder
	row := func(name, format string, values ...any) {
		fmt.Fprintf(&text, "%-15s %s\n", name+":", fmt.Sprintf(format, values...))
	}
	fmt.Fprintf(&text, "%s  metadata  %d bytes  %s\n", f.shown, f.Stat.Size, f.tag())
	switch format := imageFormat(f.head); {
	case f.Stat.Size == 0:
		m.Type = "empty"
		row("type", "empty file")
	case format != "":
		m.Type = "image"
		row("type", "image %s%s", format, f.dimensions(format))
	case isPDF(f.head):
		m.Type = "pdf"
		row("type", "pdf")
	case f.index.Binary:
		m.Type = "binary"
		row("type", "binary: %s", textfile.TypeOf(f.head))
	case f.unread:
		row("type", "text (judged by its first bytes), %s", f.index.Encoding)
		row("lines", "not counted: the file is too large")
	default:
		f.describeText(row, &m)
	}
	row("size", "%d bytes", f.Stat.Size)
	row("mode", "%s", f.Stat.Mode)
	row("modified", "%s", f.Stat.ModTime.UTC().Format(time.RFC3339Nano))
	if f.Masked {
		row("note", "values are masked when viewed")
	}
	return &answer{text: text.String(), meta: m}
}

func (f *opened) describeText(row func(name, format string, values ...any), m *meta) {
	x := f.index
	m.Lines, m.Encoding, m.Ending = x.Lines, string(x.Encoding), string(x.Ending)
	if isNotebook(f.shown) {
		m.Type = "notebook"
	}
	row("type", "%s", m.Type)
	row("lines", "%d", x.Lines)
	row("encoding", "%s", x.Encoding)
	if x.BOM > 0 {
		row("byte order mark", "yes")
	}
	row("line endings", "%s", x.Ending)
	if !x.Final && x.Lines > 0 {
		row("last line", "has no line ending")
	}
	if x.Invalid > 0 {
		row("invalid bytes", "%d", x.Invalid)
	}
	if x.NUL > 0 {
		row("NUL characters", "%d", x.NUL)
	}
}

// dimensions returns an image's size for a message, or "" if it cannot be
// decoded.
func (f *opened) dimensions(format string) string {
	var config image.Config
	config, err := codecs[format].config(bytes.NewReader(f.head))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %d x %d", config.Width, config.Height)
}

// brief removes values that are defaults or that the caller gave from the
// metadata of a text.
func (m meta) brief(a ask) meta {
	if m.Type != "text" {
		return m
	}
	m.Path, m.Type, m.Size = "", "", 0
	if m.Encoding == string(textfile.UTF8) {
		m.Encoding = ""
	}
	if m.Ending == string(textfile.LF) {
		m.Ending = ""
	}
	if a.tail == 0 && a.section == "" {
		m.First, m.Last = 0, 0
	}
	if a.limit > 0 && !m.Truncated {
		m.Lines, m.NextOffset = 0, 0
	}
	return m
}

// fill sets the fields that page.show does not know, from of.
func (m *meta) fill(of meta) {
	of.First, of.Last, of.Truncated, of.NextOffset = m.First, m.Last, m.Truncated, m.NextOffset
	*m = of
}

// meta returns the metadata common to all kinds.
func (f *opened) meta(kind string) meta {
	m := meta{Path: f.shown, Type: kind, Size: f.Stat.Size, Masked: f.Masked}
	if !f.Masked && !f.unread { // with a hash, a caller could check a guessed value
		m.Etag = f.index.Etag.String()
	}
	return m
}
