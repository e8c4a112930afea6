package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// notebook is a Jupyter notebook as text.
type notebook struct {
	Format   int    // major version of nbformat
	Language string // for example "python"; "" if the file does not say
	Cells    int    // number of cells
	Text     string // cells and outputs as lines
}

// isNotebook reports whether a file should be read as a notebook. The name
// decides, since the content is plain JSON. If the content is not a notebook,
// renderNotebook returns an error, and the file is shown as text.
func isNotebook(name string) bool { return strings.EqualFold(filepath.Ext(name), ".ipynb") }

// writeCell writes a cell: a line with its number and type, then its source,
// attachments and outputs.
func writeCell(out *strings.Builder, number int, cell nbCell) {
	kind := cell.Type
	if kind == "" {
		kind = "untyped"
	}
	fmt.Fprintf(out, "[cell %d] %s", number, oneLine(kind))
	count := cell.ExecutionCount
	if count == nil {
		count = cell.PromptNumber
	}
	if count != nil {
		fmt.Fprintf(out, " In[%d]", *count)
	}
	out.WriteByte('\n')
	source := cell.Source
	if source == "" {
		source = cell.Input
	}
	if cell.Type == "heading" {
		source = nbText(strings.Repeat("#", min(max(cell.Level, 1), 6))) + " " + source
	}
	writeBlock(out, string(source))
	for _, name := range sortedKeys(cell.Attachments) {
		for _, kind := range sortedKeys(cell.Attachments[name]) {
			fmt.Fprintf(out, "[attachment %s: %s]\n", oneLine(name), describeMedia(kind, string(cell.Attachments[name][kind])))
		}
	}
	for _, output := range cell.Outputs {
		writeOutput(out, output)
	}
}

// writeOutput writes an output of a cell: a line with its type, then its text.
func writeOutput(out *strings.Builder, output nbOutput) {
	name := output.Name
	if name == "" {
		name = output.Stream
	}
	label := output.Type
	if name != "" {
		label += " " + name
	}
	fmt.Fprintf(out, "[output] %s\n", oneLine(label))
	if output.ErrName != "" || output.ErrValue != "" {
		text := strings.Join(output.Traceback, "\n")
		if text == "" {
			text = output.ErrName + ": " + output.ErrValue
		}
		writeBounded(out, text)
		return
	}
	forms := output.Data
	if forms == nil {
		forms = map[string]nbText{
			"image/png": output.PNG, "image/jpeg": output.JPEG, "image/svg+xml": output.SVG,
			"text/html": output.HTML, "text/latex": output.Latex, "application/javascript": output.JavaScript,
		}
	}
	if output.Text != "" {
		writeBounded(out, string(output.Text))
	}
	writeRepresentations(out, forms, output.Text != "")
}

// writeRepresentations writes the simplest text among the representations of an
// output, by media type, and describes the media. shown means that a text was
// written already.
func writeRepresentations(out *strings.Builder, forms map[string]nbText, shown bool) {
	for _, kind := range []string{"text/plain", "text/markdown", "text/latex", "application/json", "text/html"} {
		if body := forms[kind]; body != "" && !shown {
			writeBounded(out, string(body))
			shown = true
		}
	}
	for _, kind := range sortedKeys(forms) {
		if forms[kind] != "" && (!strings.HasPrefix(kind, "text/") && kind != "application/json" && kind != "application/javascript" || !shown) {
			fmt.Fprintf(out, "[%s]\n", describeMedia(kind, string(forms[kind])))
		}
	}
}

// describeMedia describes content that is not shown.
func describeMedia(kind, body string) string {
	size := len(body)
	if strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" {
		digits := strings.TrimRight(strings.TrimSpace(body), "=")
		size = base64.RawStdEncoding.DecodedLen(len(digits) - strings.Count(digits, "\n"))
	}
	return fmt.Sprintf("%s, %d bytes, not shown", oneLine(kind), size)
}

// writeBlock writes text to out, with a line break at its end if it has none.
func writeBlock(out *strings.Builder, text string) {
	out.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		out.WriteByte('\n')
	}
}

// writeBounded writes an output up to maxOutputLines and maxOutputBytes, without ANSI
// escape sequences, and how much it left out.
func writeBounded(out *strings.Builder, text string) {
	text = stripANSI(strings.ReplaceAll(text, "\r\n", "\n"))
	rest := text
	for range maxOutputLines {
		line, after, found := strings.Cut(rest, "\n")
		if len(text)-len(rest)+len(line) > maxOutputBytes {
			room := maxOutputBytes - (len(text) - len(rest))
			out.WriteString(strings.ToValidUTF8(line[:max(0, room)], ""))
			rest = line[max(0, room):] + after
			out.WriteByte('\n')
			break
		}
		writeBlock(out, line+"\n")
		rest = after
		if !found || after == "" {
			return
		}
	}
	fmt.Fprintf(out, "[%d more bytes of this output in %d lines, not shown]\n", len(rest), strings.Count(rest, "\n")+1)
}

// oneLine replaces control characters by spaces, so that names from the file
// cannot look like lines of the result.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// stripANSI removes ANSI escape sequences, such as colours of tracebacks.
func stripANSI(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return out.String()
		}
		s = after[end+1:]
	}
}

// viewNotebook shows a notebook's cells and outputs as text. Lines are counted in that
// text. It returns the errors of renderNotebook, BAD_ENCODING and TOO_LARGE, and those
// of reading.
func (f *viewedFile) viewNotebook(ctx context.Context) (*answer, error) {
	var source io.Reader = io.NewSectionReader(f, int64(f.index.BOM), f.Stat.Size-int64(f.index.BOM))
	if e := f.index.Encoding; e != textfile.UTF8 && !f.index.Binary {
		raw, err := readRange(f, int64(f.index.BOM), f.Stat.Size-int64(f.index.BOM))
		if err != nil {
			return nil, err
		}
		source = strings.NewReader(e.Decode(raw))
	}
	book, err := renderNotebook(ctx, source, f.Stat.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.shownPath, err)
	}
	kind := fmt.Sprintf("notebook, %d cells", book.Cells)
	if book.Language != "" {
		kind += ", " + book.Language
	}
	got, err := f.viewGenerated(ctx, strings.NewReader(book.Text), kind, f.index.Format.String())
	if err != nil {
		return nil, err
	}
	m := f.newMeta("notebook")
	m.Lines = got.meta.Lines
	got.meta.completeFrom(m)
	return got, nil
}
