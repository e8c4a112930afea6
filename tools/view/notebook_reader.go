package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// nbReader reads a notebook from beginning to end.
type nbReader struct {
	json     *json.Decoder
	book     notebook
	metadata nbMetadata
	out      strings.Builder
}

// eachMember reads an object and calls read with each name; read consumes the
// value.
func (n *nbReader) eachMember(read func(name string) error) error {
	return n.eachElement('{', func() error {
		name, err := n.json.Token()
		if err != nil {
			return err
		}
		return read(name.(string)) // the decoder guarantees a string here
	})
}

// eachElement reads an object or array and calls read for each element; null
// counts as empty.
func (n *nbReader) eachElement(open json.Delim, read func() error) error {
	switch token, err := n.json.Token(); {
	case err != nil || token == nil:
		return err
	case token != open:
		return fmt.Errorf("got %v, want %v", token, open)
	}
	for n.json.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := n.json.Token()
	return err
}

// readTopLevel reads a member of the top-level object, by its name in any case of
// letters. It skips unknown members.
func (n *nbReader) readTopLevel(name string) error {
	switch strings.ToLower(name) {
	case "nbformat":
		return n.json.Decode(&n.book.Format)
	case "metadata":
		return n.json.Decode(&n.metadata)
	case "cells":
		return n.eachElement('[', n.readCell)
	case "worksheets": // format 3
		return n.eachElement('[', func() error { return n.eachMember(n.readWorksheet) })
	}
	return n.json.Decode(new(json.RawMessage))
}

// readWorksheet reads a member of a worksheet, of format 3.
func (n *nbReader) readWorksheet(name string) error {
	if strings.EqualFold(name, "cells") {
		return n.eachElement('[', n.readCell)
	}
	return n.json.Decode(new(json.RawMessage))
}

// readCell reads a cell and writes its text to n.out.
func (n *nbReader) readCell() error {
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

// renderNotebook returns a notebook's cells and outputs as plain text. Images and other
// media are described by type and size. It decodes a single cell at a time, because
// decoded cells need many times their size in the file. It returns BAD_ENCODING if the
// content is not a notebook, and TOO_LARGE above maxNotebook.
func renderNotebook(ctx context.Context, r io.Reader, size int64) (*notebook, error) {
	if size > maxNotebook {
		return nil, toolerr.New(toolerr.TooLarge, "the notebook has %d bytes, more than the limit of %d", size, maxNotebook)
	}
	n := nbReader{json: json.NewDecoder(&contextReader{ctx, r})}
	err := n.eachMember(n.readTopLevel)
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

// nbText is a string that may be stored as a list of lines. Any other JSON
// value is kept as it is.
type nbText string

// UnmarshalJSON accepts a string, a list of lines, and any other JSON value as it is.
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
// since most may be tiny. data must be valid JSON. isLines is false if data is
// not an array of strings.
func joinedLines(data []byte) (joined string, isLines bool) {
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

// nbCell is a cell in the JSON of a notebook.
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

// nbOutput is an output of a cell.
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

// nbMetadata has the language of a notebook, in one of two places.
type nbMetadata struct {
	Kernel struct {
		Language string `json:"language"`
	} `json:"kernelspec"`
	Language struct {
		Name string `json:"name"`
	} `json:"language_info"`
}
