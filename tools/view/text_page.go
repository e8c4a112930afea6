package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// noteRoom is the part of the budget reserved for the header and notes,
	// in bytes.
	noteRoom = 1200
	// autoOutline bounds the text for which an outline is added
	// automatically, in bytes: parsing dense code needs forty times its
	// size.
	autoOutline = 1 << 20
)

// page is text to show line by line: a file's own text, or text generated from
// a file.
type page struct {
	ask
	shown  string // path
	kind   string // for the header; "": plain text
	tag    string // end of the header
	format string
	index  *textfile.Index
	source io.ReaderAt
}

// text shows the file's own lines.
func (f *opened) text(ctx context.Context) (*answer, []state.Range, error) {
	index := f.index
	f.encoding = cmp.Or(f.encoding, f.told)
	if f.encoding != "" && (f.encoding != index.Encoding || index.Guessed) {
		forced, err := f.reread(ctx)
		if err != nil {
			return nil, nil, err
		}
		index = forced
	}
	p := page{ask: f.ask, shown: f.shown, tag: f.tag(), format: index.Format.String(), index: index, source: f}
	got, ranges, err := p.show()
	if err != nil {
		return nil, nil, err
	}
	m := f.meta("text")
	m.Lines, m.Encoding, m.Ending = index.Lines, string(index.Encoding), string(index.Ending)
	if f.Stat.Size == 0 {
		m.Type = "empty"
	}
	got.meta.fill(m)
	if index.Encoding.Wide() != f.index.Encoding.Wide() {
		ranges = nil // the line numbers differ from those of the detected encoding
	}
	return got, ranges, nil
}

// reread returns the index for a requested encoding. If single bytes end lines
// in both encodings, it reuses the existing index.
func (f *opened) reread(ctx context.Context) (*textfile.Index, error) {
	if x := *f.index; !x.Binary && x.BOM == 0 && !x.Encoding.Wide() && !f.encoding.Wide() && f.encoding != textfile.UTF8 {
		x.Encoding, x.Guessed, x.Invalid = f.encoding, false, 0
		return &x, nil
	}
	return textfile.Scan(ctx, f, f.Stat.Size, textfile.Options{Encoding: f.encoding})
}

// content is text in memory.
type content interface {
	io.ReaderAt
	Size() int64
}

// made shows text that was generated from the file.
func (f *opened) made(ctx context.Context, source content, kind, format string) (*answer, error) {
	index, err := textfile.Scan(ctx, source, source.Size(), textfile.Options{Encoding: textfile.UTF8})
	if err != nil {
		return nil, err
	}
	p := page{ask: f.ask, shown: f.shown, kind: kind, tag: f.tag(), format: format, index: index, source: source}
	got, _, err := p.show()
	if err != nil {
		return nil, err
	}
	got.meta.Lines = index.Lines
	return got, nil
}

// show renders the requested lines.
func (p *page) show() (*answer, []state.Range, error) {
	if p.index.Lines == 0 {
		return &answer{text: fmt.Sprintf("%s  empty: 0 lines, %d bytes  %s\n", p.title(), p.index.Size, p.tag)}, nil, nil
	}
	b := body{room: max(p.budget-noteRoom, p.budget/2), first: max(p.offset, 1), limit: defaultLines}
	if p.limit > 0 {
		b.limit = min(p.limit, p.index.Lines)
	}
	asked := b.first
	if p.tail > 0 {
		b.first = max(1, p.index.Lines-p.tail+1)
		asked = b.first
		if p.limit == 0 {
			// Skip lines that cannot fit: a row has at least a
			// number, a tab and a line feed.
			b.fromEnd, b.limit = true, min(p.tail, p.index.Lines)
			b.first = max(b.first, p.index.Lines-int64(b.room/(digits(p.index.Lines)+len("\t\n"))))
		}
	}
	var notes []string
	if p.section != "" {
		found, err := p.find(&b)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, found...)
		asked = b.first
	}
	if asked > p.index.Lines {
		return p.pastEnd(asked), nil, nil
	}
	symbols := p.outline(b.room / 8)
	b.room -= len(symbols)
	if err := b.fill(p); err != nil {
		return nil, nil, err
	}
	got := &answer{meta: meta{First: b.first, Last: b.last}}
	wanted := min(b.first+b.limit-1, p.index.Lines)
	if b.last < p.index.Lines {
		got.meta.NextOffset = b.last + 1
	}
	if b.first > asked {
		got.meta.Truncated = true
		notes = append(notes, fmt.Sprintf("only the last %d lines fit; before them: view offset=%d limit=%d", b.last-b.first+1, asked, b.first-asked))
	}
	got.meta.Truncated = got.meta.Truncated || b.last < wanted || !p.ranged() && b.last < p.index.Lines
	if got.meta.Truncated && b.last < p.index.Lines {
		notes = append(notes, p.more(b.last, wanted))
	}
	notes = append(notes, b.notes(p)...)
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s of %d  %s\n", p.title(), lineRangeText(b.first, b.last), p.index.Lines, p.end())
	text.WriteString(b.text.String())
	text.WriteString(symbols)
	for _, note := range notes {
		text.WriteString("note: " + note + "\n")
	}
	got.text = text.String()
	return got, b.ranges, nil
}

// end returns the end of the header: the tag, after the encoding and line
// ending unless they are UTF-8 and LF.
func (p *page) end() string {
	switch p.format {
	case "", "utf-8", "utf-8 lf":
		return p.tag
	}
	return p.format + "  " + p.tag
}

func lineRangeText(first, last int64) string {
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, last)
}

// title returns the beginning of the header.
func (p *page) title() string {
	if p.kind == "" {
		return p.shown
	}
	return p.shown + "  " + p.kind
}

func (p *page) pastEnd(first int64) *answer {
	return &answer{text: fmt.Sprintf("%s  no line %d, %d in total  %s\nnote: offset=%d is past the end; view offset=%d shows the last lines\n",
		p.title(), first, p.index.Lines, p.end(), first, max(1, p.index.Lines-19))}
}

// more returns a note with the number of remaining lines and the call that
// continues.
func (p *page) more(last, wanted int64) string {
	next := fmt.Sprintf("view offset=%d", last+1)
	if p.limit > 0 || p.tail > 0 || p.section != "" {
		next += fmt.Sprintf(" limit=%d", wanted-last)
	}
	left := p.index.Lines - last
	if last < wanted && wanted < p.index.Lines {
		return fmt.Sprintf("cut to fit: %d more requested lines, %d in total; next: %s", wanted-last, left, next)
	}
	return fmt.Sprintf("%d more lines; next: %s", left, next)
}

// whole returns the complete text, or nil if it is too long to search for
// symbols.
func (p *page) whole() ([]byte, error) {
	if p.index.Size > maxOutline {
		return nil, nil
	}
	raw, err := readAll(p.source, 0, p.index.Size)
	if err != nil {
		return nil, err
	}
	text := p.index.Encoding.Decode(raw[p.index.BOM:])
	if p.index.Ending == textfile.CR {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return []byte(text), nil
}

// find sets the range to a section's lines.
func (p *page) find(b *body) (notes []string, err error) {
	text, err := p.whole()
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, toolerr.New(toolerr.TooLarge, "%s has %d bytes, and section works up to %d; use offset and limit", p.shown, p.index.Size, maxOutline)
	}
	found, err := findSection(p.shown, text, p.section)
	if err != nil {
		return nil, err
	}
	b.first, b.limit = int64(found.First), int64(found.Last-found.First+1)
	if p.limit > 0 {
		b.limit = min(b.limit, p.limit)
	}
	if found.Note != "" {
		notes = append(notes, found.Note)
	}
	return notes, nil
}

// outline returns the symbols of a long file, or "" if the call selects a part
// of the file.
func (p *page) outline(budget int) string {
	if p.index.Lines <= defaultLines || p.index.Size > autoOutline || p.ranged() {
		return ""
	}
	text, err := p.whole()
	if err != nil || text == nil {
		return "" // the lines themselves show or report it
	}
	found := outline(p.shown, text)
	if len(found) == 0 {
		return ""
	}
	return "\noutline (lines, symbol):\n" + renderOutline(found, budget) + "\n"
}
