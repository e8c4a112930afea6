package main

import (
	"bytes"
	"fmt"
	"image"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// viewMetadata shows the metadata of the file without its content.
func (f *viewedFile) viewMetadata() *answer {
	kind := "text"
	m := f.newMeta(kind)
	var text strings.Builder
	row := func(name, format string, values ...any) {
		fmt.Fprintf(&text, "%-15s %s\n", name+":", fmt.Sprintf(format, values...))
	}
	fmt.Fprintf(&text, "%s  metadata  %d bytes  %s\n", f.shownPath, f.Stat.Size, f.headerTag())
	switch format := imageFormat(f.head); {
	case f.Stat.Size == 0:
		m.Type = "empty"
		row("type", "empty file")
	case format != "":
		m.Type = "image"
		row("type", "image %s%s", format, f.imageDimensions(format))
	case isPDF(f.head):
		m.Type = "pdf"
		row("type", "pdf")
	case f.index.Binary:
		m.Type = "binary"
		row("type", "binary: %s", textfile.BinaryType(f.head))
	case f.headOnly:
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

// describeText adds the properties of a text to the rows and the metadata.
func (f *viewedFile) describeText(row func(name, format string, values ...any), m *meta) {
	x := f.index
	m.Lines, m.Encoding, m.Ending = x.Lines, string(x.Encoding), string(x.Ending)
	if isNotebook(f.shownPath) {
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

// imageDimensions returns ", W x H" for an image, or "" if its header cannot be
// decoded.
func (f *viewedFile) imageDimensions(format string) string {
	var config image.Config
	config, err := imageDecoders[format].decodeHeader(bytes.NewReader(f.head))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %d x %d", config.Width, config.Height)
}

// withoutDefaults returns the metadata of a text without values that are
// defaults or that the caller gave. Other metadata is returned unchanged.
func (m meta) withoutDefaults(a request) meta {
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

// completeFrom takes all fields from the file's metadata, except those that
// textPage.render has set: First, Last, Truncated and NextOffset.
func (m *meta) completeFrom(file meta) {
	file.First, file.Last, file.Truncated, file.NextOffset = m.First, m.Last, m.Truncated, m.NextOffset
	*m = file
}

// newMeta returns the metadata common to all kinds. kind is the type.
func (f *viewedFile) newMeta(kind string) meta {
	m := meta{Path: f.shownPath, Type: kind, Size: f.Stat.Size, Masked: f.Masked}
	if !f.Masked && !f.headOnly { // with a hash, a caller could check a guessed value
		m.Etag = f.index.Etag.String()
	}
	return m
}
