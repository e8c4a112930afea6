package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// defaultPages is the number of pages of a PDF shown by default.
const defaultPages = 20

// image shows an image file as an image.
func (f *opened) image(ctx context.Context, format string) (*answer, error) {
	pic, err := loadImage(ctx, f, f.Stat.Size, format)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.shown, err)
	}
	text := fmt.Sprintf("%s  image %s  %d x %d  %d bytes  %s\n", f.shown, pic.Format, pic.Width, pic.Height, f.Stat.Size, f.tag())
	if pic.SentWidth != pic.Width || pic.SentHeight != pic.Height {
		text += fmt.Sprintf("note: shown scaled to %d x %d\n", pic.SentWidth, pic.SentHeight)
	}
	if pic.Note != "" {
		text += "note: " + pic.Note + "\n"
	}
	return &answer{text: text, images: []mcpkit.Image{{Data: pic.Data, MIME: pic.MIME}}, meta: f.meta("image")}, nil
}

// pdf shows the text of the requested pages.
func (f *opened) pdf(ctx context.Context) (*answer, error) {
	if f.section != "" || f.tail > 0 {
		return nil, toolerr.New(toolerr.InvalidParams, "%s is a PDF: offset and limit select pages; section and tail are not supported", f.shown)
	}
	first, count := min(max(f.offset, 1), 1<<30), int64(defaultPages)
	if f.limit > 0 {
		count = min(f.limit, 1<<20)
	}
	document, err := pdfText(ctx, f.File.File, int(first), int(count))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.shown, err)
	}
	m := f.meta("pdf")
	m.Lines = int64(document.Total)
	if len(document.Pages) == 0 {
		return &answer{text: fmt.Sprintf("%s  pdf  no page %d, %d in total  %s\n", f.shown, first, document.Total, f.tag()), meta: m}, nil
	}
	room := max(f.budget-noteRoom, f.budget/2)
	var text strings.Builder
	shown := 0
	for _, page := range document.Pages {
		block := pageBlock(page)
		if text.Len()+len(block) > room {
			if shown > 0 {
				break
			}
			block = clip(block, max(room-80, 80)) + "\nnote: the rest of this page is cut\n"
		}
		text.WriteString(block)
		shown++
	}
	m.First, m.Last = int64(document.Pages[0].Number), int64(document.Pages[shown-1].Number)
	if m.Last < m.Lines {
		m.NextOffset = m.Last + 1
		m.Truncated = f.limit == 0 || m.Last < min(first+count-1, m.Lines)
	}
	header := fmt.Sprintf("%s  pdf  pages %d-%d of %d  %d bytes  %s\n", f.shown, m.First, m.Last, document.Total, f.Stat.Size, f.tag())
	if m.Truncated {
		fmt.Fprintf(&text, "note: %d more pages; next: view offset=%d\n", m.Lines-m.Last, m.NextOffset)
	}
	return &answer{text: header + text.String(), meta: m}, nil
}

func pageBlock(page pdfPage) string {
	body := strings.TrimRight(page.Text, "\n")
	if strings.TrimSpace(body) == "" {
		body = "(no text on this page: it may be a scanned image)"
	}
	if page.Fault != "" {
		body += "\n(" + page.Fault + ")"
	}
	return fmt.Sprintf("page %d\n%s\n", page.Number, body)
}

// notebook shows a notebook's cells and outputs as text; lines are counted in
// that text.
func (f *opened) notebook(ctx context.Context) (*answer, error) {
	var source io.Reader = io.NewSectionReader(f, int64(f.index.BOM), f.Stat.Size-int64(f.index.BOM))
	if e := f.index.Encoding; e != textfile.UTF8 && !f.index.Binary {
		raw, err := readAll(f, int64(f.index.BOM), f.Stat.Size-int64(f.index.BOM))
		if err != nil {
			return nil, err
		}
		source = strings.NewReader(e.Decode(raw))
	}
	book, err := renderNotebook(ctx, source, f.Stat.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.shown, err)
	}
	kind := fmt.Sprintf("notebook, %d cells", book.Cells)
	if book.Language != "" {
		kind += ", " + book.Language
	}
	got, err := f.made(ctx, strings.NewReader(book.Text), kind, f.index.Format.String())
	if err != nil {
		return nil, err
	}
	m := f.meta("notebook")
	m.Lines = got.meta.Lines
	got.meta.fill(m)
	return got, nil
}
