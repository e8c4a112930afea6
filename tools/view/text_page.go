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

// textPage is text to show line by line: a file's own text, or text generated
// from a file.
type textPage struct {
	request
	shownPath string // path in results
	kind      string // for the header; "": plain text
	tag       string // end of the header
	format    string // encoding and line ending, for the header
	index     *textfile.Index
	source    io.ReaderAt
}

// viewText shows the file's own lines. The ranges are the lines shown exactly
// as they are in the file.
func (f *viewedFile) viewText(ctx context.Context) (*answer, []state.Range, error) {
	index := f.index
	f.encoding = cmp.Or(f.encoding, f.namedEncoding)
	if f.encoding != "" && (f.encoding != index.Encoding || index.Guessed) {
		forced, err := f.reindex(ctx)
		if err != nil {
			return nil, nil, err
		}
		index = forced
	}
	p := textPage{request: f.request, shownPath: f.shownPath, tag: f.headerTag(), format: index.Format.String(), index: index, source: f}
	got, ranges, err := p.render()
	if err != nil {
		return nil, nil, err
	}
	m := f.newMeta("text")
	m.Lines, m.Encoding, m.Ending = index.Lines, string(index.Encoding), string(index.Ending)
	if f.Stat.Size == 0 {
		m.Type = "empty"
	}
	got.meta.completeFrom(m)
	if index.Encoding.IsUTF16() != f.index.Encoding.IsUTF16() {
		ranges = nil // the line numbers differ from those of the detected encoding
	}
	return got, ranges, nil
}

// reindex returns the index for a requested encoding. If single bytes end lines
// in both encodings, it reuses the existing index.
func (f *viewedFile) reindex(ctx context.Context) (*textfile.Index, error) {
	if x := *f.index; !x.Binary && x.BOM == 0 && !x.Encoding.IsUTF16() && !f.encoding.IsUTF16() && f.encoding != textfile.UTF8 {
		x.Encoding, x.Guessed, x.Invalid = f.encoding, false, 0
		return &x, nil
	}
	return textfile.Scan(ctx, f, f.Stat.Size, textfile.Options{Encoding: f.encoding})
}

// textSource is text in memory.
type textSource interface {
	io.ReaderAt
	Size() int64
}

// viewGenerated shows text that was generated from the file. kind and format
// are for the header.
func (f *viewedFile) viewGenerated(ctx context.Context, source textSource, kind, format string) (*answer, error) {
	index, err := textfile.Scan(ctx, source, source.Size(), textfile.Options{Encoding: textfile.UTF8})
	if err != nil {
		return nil, err
	}
	p := textPage{request: f.request, shownPath: f.shownPath, kind: kind, tag: f.headerTag(), format: format, index: index, source: source}
	got, _, err := p.render()
	if err != nil {
		return nil, err
	}
	got.meta.Lines = index.Lines
	return got, nil
}

// render returns the requested lines. The ranges are the lines shown exactly as
// they are in the text.
func (p *textPage) render() (*answer, []state.Range, error) {
	if p.index.Lines == 0 {
		return &answer{text: fmt.Sprintf("%s  empty: 0 lines, %d bytes  %s\n", p.headerStart(), p.index.Size, p.tag)}, nil, nil
	}
	b := pageLines{maxBytes: max(p.budget-noteRoom, p.budget/2), first: max(p.offset, 1), limit: defaultLines}
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
			b.first = max(b.first, p.index.Lines-int64(b.maxBytes/(digitCount(p.index.Lines)+len("\t\n"))))
		}
	}
	var notes []string
	if p.section != "" {
		found, err := p.selectSection(&b)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, found...)
		asked = b.first
	}
	if asked > p.index.Lines {
		return p.pastEndAnswer(asked), nil, nil
	}
	symbols := p.outlineIfLong(b.maxBytes / 8)
	b.maxBytes -= len(symbols)
	if err := b.renderFrom(p); err != nil {
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
	got.meta.Truncated = got.meta.Truncated || b.last < wanted || !p.selectsPart() && b.last < p.index.Lines
	if got.meta.Truncated && b.last < p.index.Lines {
		notes = append(notes, p.moreNote(b.last, wanted))
	}
	notes = append(notes, b.notes(p)...)
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s of %d  %s\n", p.headerStart(), lineRangeText(b.first, b.last), p.index.Lines, p.headerEnd())
	text.WriteString(b.text.String())
	text.WriteString(symbols)
	for _, note := range notes {
		text.WriteString("note: " + note + "\n")
	}
	got.text = text.String()
	return got, b.ranges, nil
}

// headerEnd returns the end of the header: the tag, after the encoding and line
// ending unless they are UTF-8 and LF.
func (p *textPage) headerEnd() string {
	switch p.format {
	case "", "utf-8", "utf-8 lf":
		return p.tag
	}
	return p.format + "  " + p.tag
}

// lineRangeText returns "line 3" or "lines 3-7".
func lineRangeText(first, last int64) string {
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, last)
}

// headerStart returns the beginning of the header: the path and the kind.
func (p *textPage) headerStart() string {
	if p.kind == "" {
		return p.shownPath
	}
	return p.shownPath + "  " + p.kind
}

// pastEndAnswer returns the answer if the first requested line does not exist.
func (p *textPage) pastEndAnswer(first int64) *answer {
	return &answer{text: fmt.Sprintf("%s  no line %d, %d in total  %s\nnote: offset=%d is past the end; view offset=%d shows the last lines\n",
		p.headerStart(), first, p.index.Lines, p.headerEnd(), first, max(1, p.index.Lines-19))}
}

// moreNote returns a note with the number of lines after last, and the call
// that continues. wanted is the last requested line.
func (p *textPage) moreNote(last, wanted int64) string {
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

// wholeText returns the complete text, decoded and with LF line endings; nil if
// it is too long to search for symbols.
func (p *textPage) wholeText() ([]byte, error) {
	if p.index.Size > maxOutline {
		return nil, nil
	}
	raw, err := readRange(p.source, 0, p.index.Size)
	if err != nil {
		return nil, err
	}
	text := p.index.Encoding.Decode(raw[p.index.BOM:])
	if p.index.Ending == textfile.CR {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return []byte(text), nil
}

// selectSection sets the range of l to a section's lines. The notes tell how the
// section was found. It returns TOO_LARGE for a text too long to search, INVALID_PARAMS
// for an empty section, and NOT_FOUND.
func (p *textPage) selectSection(l *pageLines) (notes []string, err error) {
	text, err := p.wholeText()
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, toolerr.New(toolerr.TooLarge, "%s has %d bytes, and section works up to %d; use offset and limit", p.shownPath, p.index.Size, maxOutline)
	}
	found, err := findSection(p.shownPath, text, p.section)
	if err != nil {
		return nil, err
	}
	l.first, l.limit = int64(found.First), int64(found.Last-found.First+1)
	if p.limit > 0 {
		l.limit = min(l.limit, p.limit)
	}
	if found.Note != "" {
		notes = append(notes, found.Note)
	}
	return notes, nil
}

// outlineIfLong returns a part of the answer with the symbols of a long file,
// in at most budget bytes. It returns "" for a short or very large file (see
// autoOutline), if the call selects a part, and if no symbols are found.
func (p *textPage) outlineIfLong(budget int) string {
	if p.index.Lines <= defaultLines || p.index.Size > autoOutline || p.selectsPart() {
		return ""
	}
	text, err := p.wholeText()
	if err != nil || text == nil {
		return "" // the lines themselves show or report it
	}
	found := findSymbols(p.shownPath, text)
	if len(found) == 0 {
		return ""
	}
	return "\noutline (lines, symbol):\n" + renderOutline(found, budget) + "\n"
}
