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
	// maxNotebook bounds the file, whose text is made as a whole.
	maxNotebook = 48 << 20
	// maxOutputLines and maxOutputBytes bound one output of a cell: a
	// notebook's prints may be longer than all of its code.
	maxOutputLines = 100
	maxOutputBytes = 16 << 10
)

// notebook is a Jupyter notebook as text.
type notebook struct {
	Format   int    // major version of nbformat
	Language string // "python"; empty where the file does not say
	Cells    int
	Text     string
}

// isNotebook reports whether a file is to be read as a notebook. The name
// decides, since the content is plain JSON; a file that turns out not to be
// one makes renderNotebook fail and is then text like any other.
func isNotebook(name string) bool { return strings.EqualFold(filepath.Ext(name), ".ipynb") }

// nbText is a string that may be stored as the list of its lines.
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
	// application/json and its like hold any value.
	*t = nbText(data)
	return nil
}

// joinedLines joins a JSON array of strings without holding them one by one:
// each may be no more than its quotes. data is valid JSON.
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
	// Format 3 keeps representations beside the rest.
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

// renderNotebook writes a notebook's cells and outputs as plain text. Images
// and other media are named with their size, never dumped. One cell is held at
// a time: decoded, cells take many times what they do in the file.
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

// nbReader reads a notebook from its beginning to its end.
type nbReader struct {
	json     *json.Decoder
	book     notebook
	metadata nbMetadata
	out      strings.Builder
}

// members reads an object, each of whose values member reads.
func (n *nbReader) members(member func(name string) error) error {
	return n.inside('{', func() error {
		name, err := n.json.Token()
		if err != nil {
			return err
		}
		return member(name.(string)) // or the decoder had failed
	})
}

// inside reads an object or an array by its parts; null has none.
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

// top reads a member of the file.
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

// writeForms shows the plainest text among the representations of one
// output, and names its media.
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

// media names something that is not shown.
func media(kind, body string) string {
	size := len(body)
	if strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" {
		digits := strings.TrimRight(strings.TrimSpace(body), "=")
		size = base64.RawStdEncoding.DecodedLen(len(digits) - strings.Count(digits, "\n"))
	}
	return fmt.Sprintf("%s, %d bytes, not shown", oneLine(kind), size)
}

// writeBlock writes text that ends its line.
func writeBlock(out *strings.Builder, text string) {
	out.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		out.WriteByte('\n')
	}
}

// writeBounded writes the beginning of an output and says what it left out.
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

// oneLine keeps names from the file from looking like lines of the result.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// stripANSI removes the colours of tracebacks.
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
