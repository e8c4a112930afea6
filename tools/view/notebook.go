package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxNotebook bounds the file, because its text is built in memory, in
	// bytes.
	maxNotebook = 48 << 20
	// maxOutputLines and maxOutputBytes bound each output of a cell, which
	// may be longer than all code of the notebook.
	maxOutputLines = 100
	maxOutputBytes = 16 << 10
)

// notebook is a Jupyter notebook as text.
type notebook struct {
	Format   int    // major version of nbformat
	Language string // for example "python"; "" if the file does not say
	Cells    int
	Text     string
}

// isNotebook reports whether a file should be read as a notebook. The name
// decides, since the content is plain JSON. If the content is not a notebook,
// renderNotebook returns an error, and the file is shown as text.
func isNotebook(name string) bool { return strings.EqualFold(filepath.Ext(name), ".ipynb") }

// nbText is a string that may be stored as a list of lines.
type nbText string

func (t *nbText) UnmarshalJSON(data []byte) error {
	if text, ok := joinedLines(data); ok {
		*t = nbText(text)
		return nil
	}
	var whole string
	if json.Unmarshal(data, &whole) == nil {
		*t = nbText(whole)
		return nil
	}
	// Media types such as application/json allow any JSON value.
	*t = nbText(data)
	return nil
}

// joinedLines joins a JSON array of strings without allocating each of them,
// since most may be tiny. data must be valid JSON. The result is false if data
// is not an array of strings.
func joinedLines(data []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(data, []byte{'['})
	var text strings.Builder
	for ok {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		switch {
		case rest[0] == ']':
			return text.String(), true
		case rest[0] != '"':
			return "", false
		}
		end := 1
		for ; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		line := rest[1:end]
		if bytes.IndexByte(line, '\\') >= 0 || !utf8.Valid(line) {
			var plain string
			if json.Unmarshal(rest[:end+1], &plain) != nil {
				return "", false
			}
			text.WriteString(plain)
		} else {
			text.Write(line)
		}
		rest = rest[end+1:]
	}
	return "", false
}

type nbCell struct {
	Type           string                       `json:"cell_type"`
	Source         nbText                       `json:"source"`
	Input          nbText                       `json:"input"`    // format 3, code
	Level          int                          `json:"level"`    // format 3, heading
	Language       string                       `json:"language"` // format 3
	ExecutionCount *int                         `json:"execution_count"`
	PromptNumber   *int                         `json:"prompt_number"` // format 3
	Outputs        []nbOutput                   `json:"outputs"`
	Attachments    map[string]map[string]nbText `json:"attachments"`
}

type nbOutput struct {
	Type      string            `json:"output_type"`
	Name      string            `json:"name"`   // stream
	Stream    string            `json:"stream"` // stream, format 3
	Text      nbText            `json:"text"`
	Data      map[string]nbText `json:"data"`
	ErrName   string            `json:"ename"`
	ErrValue  string            `json:"evalue"`
	Traceback []string          `json:"traceback"`
	// Format 3 stores the representations as members of the output.
	PNG        nbText `json:"png"`
	JPEG       nbText `json:"jpeg"`
	SVG        nbText `json:"svg"`
	HTML       nbText `json:"html"`
	Latex      nbText `json:"latex"`
	JavaScript nbText `json:"javascript"`
}

type nbMetadata struct {
	Kernel struct {
		Language string `json:"language"`
	} `json:"kernelspec"`
	Language struct {
		Name string `json:"name"`
	} `json:"language_info"`
}

// renderNotebook returns a notebook's cells and outputs as plain text. Images
// and other media are described by type and size. It decodes a single cell at a
// time, because decoded cells need many times their size in the file.
func renderNotebook(ctx context.Context, r io.Reader, size int64) (*notebook, error) {
	if size > maxNotebook {
		return nil, toolerr.New(toolerr.TooLarge, "the notebook has %d bytes, more than the limit of %d", size, maxNotebook)
	}
	n := nbReader{json: json.NewDecoder(&cancelledReader{ctx, r})}
	err := n.members(n.top)
	if err == nil {
		if _, end := n.json.Token(); end != io.EOF {
			err = errors.New("data after the JSON value")
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, toolerr.New(toolerr.BadEncoding, "invalid notebook JSON: %w", err)
	}
	if n.book.Format == 0 && n.book.Cells == 0 {
		return nil, toolerr.New(toolerr.BadEncoding, "not a notebook: the JSON has neither cells nor nbformat")
	}
	n.book.Text = n.out.String()
	n.book.Language = cmp.Or(n.metadata.Language.Name, n.metadata.Kernel.Language, n.book.Language)
	return &n.book, nil
}

// nbReader reads a notebook from beginning to end.
type nbReader struct {
	json     *json.Decoder
	book     notebook
	metadata nbMetadata
	out      strings.Builder
}

// members reads an object and calls member for each name; member reads the
// value.
func (n *nbReader) members(member func(name string) error) error {
	return n.inside('{', func() error {
		name, err := n.json.Token()
		if err != nil {
			return err
		}
		return member(name.(string)) // the decoder guarantees a string here
	})
}

// inside reads an object or array and calls part for each element; null counts
// as empty.
func (n *nbReader) inside(open json.Delim, part func() error) error {
	switch token, err := n.json.Token(); {
	case err != nil || token == nil:
		return err
	case token != open:
		return fmt.Errorf("got %v, want %v", token, open)
	}
	for n.json.More() {
		if err := part(); err != nil {
			return err
		}
	}
	_, err := n.json.Token()
	return err
}

// top reads a member of the top-level object.
func (n *nbReader) top(name string) error {
	switch strings.ToLower(name) {
	case "nbformat":
		return n.json.Decode(&n.book.Format)
	case "metadata":
		return n.json.Decode(&n.metadata)
	case "cells":
		return n.inside('[', n.cell)
	case "worksheets": // format 3
		return n.inside('[', func() error { return n.members(n.sheet) })
	}
	return n.json.Decode(new(json.RawMessage))
}

func (n *nbReader) sheet(name string) error {
	if strings.EqualFold(name, "cells") {
		return n.inside('[', n.cell)
	}
	return n.json.Decode(new(json.RawMessage))
}

func (n *nbReader) cell() error {
	var cell nbCell
	if err := n.json.Decode(&cell); err != nil {
		return err
	}
	n.book.Language = cmp.Or(n.book.Language, cell.Language)
	if n.book.Cells++; n.book.Cells > 1 {
		n.out.WriteByte('\n')
	}
	writeCell(&n.out, n.book.Cells, cell)
	return nil
}

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
			fmt.Fprintf(out, "[attachment %s: %s]\n", oneLine(name), media(kind, string(cell.Attachments[name][kind])))
		}
	}
	for _, output := range cell.Outputs {
		writeOutput(out, output)
	}
}

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
	writeForms(out, forms, output.Text != "")
}

// writeForms writes the simplest text among the representations of an output,
// and describes its media.
func writeForms(out *strings.Builder, forms map[string]nbText, shown bool) {
	for _, kind := range []string{"text/plain", "text/markdown", "text/latex", "application/json", "text/html"} {
		if body := forms[kind]; body != "" && !shown {
			writeBounded(out, string(body))
			shown = true
		}
	}
	for _, kind := range sortedKeys(forms) {
		if forms[kind] != "" && (!strings.HasPrefix(kind, "text/") && kind != "application/json" && kind != "application/javascript" || !shown) {
			fmt.Fprintf(out, "[%s]\n", media(kind, string(forms[kind])))
		}
	}
}

// media describes content that is not shown.
func media(kind, body string) string {
	size := len(body)
	if strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" {
		digits := strings.TrimRight(strings.TrimSpace(body), "=")
		size = base64.RawStdEncoding.DecodedLen(len(digits) - strings.Count(digits, "\n"))
	}
	return fmt.Sprintf("%s, %d bytes, not shown", oneLine(kind), size)
}

// writeBlock writes text and ends its last line.
func writeBlock(out *strings.Builder, text string) {
	out.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		out.WriteByte('\n')
	}
}

// writeBounded writes the beginning of an output, and how much it left out.
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

// oneLine removes control characters, so that names from the file cannot look
// like lines of the result.
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
