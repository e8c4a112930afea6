package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/state"
	"github.com/toolroom-mcp/toolroom/pkg/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

//go:embed view.md
var description string

const (
	defaultLines = 2000
	maxTokens    = 20_000
	// maxPaths bounds the files of one call.
	maxPaths = 100
	// maxConcurrent bounds the memory of calls side by side.
	maxConcurrent = 8
	// deadline is far above what the largest file on a slow disk takes.
	deadline = 2 * time.Minute
)

type arguments struct {
	FilePath string `json:"file_path,omitempty" alias:"path" jsonschema:"the file; absolute, or relative to the first root"`
	Offset   int64  `json:"offset,omitempty" min:"0" jsonschema:"first line, from 1 (PDF: page; hex: byte, from 0)"`
	Limit    int64  `json:"limit,omitempty" min:"1" jsonschema:"lines to show, 2000 unless given (PDF: pages; hex: bytes)"`
	Tail     int64  `json:"tail,omitempty" min:"1" jsonschema:"show the last N lines instead"`
	Section  string `json:"section,omitempty" alias:"find_section" jsonschema:"show this markdown heading or this symbol"`
	Paths    []part `json:"paths,omitempty" jsonschema:"several files in one call"`
	Hex      bool   `json:"hex,omitempty" default:"false" jsonschema:"dump bytes"`
	Encoding string `json:"encoding,omitempty" jsonschema:"read the text in this encoding instead of the detected one"`
	Metadata bool   `json:"metadata,omitempty" default:"false" jsonschema:"tell about the file, without content"`
}

// part is one of several files.
type part struct {
	FilePath string `json:"file_path" alias:"path" jsonschema:"the file"`
	Offset   int64  `json:"offset,omitempty" min:"0" jsonschema:"first line"`
	Limit    int64  `json:"limit,omitempty" min:"1" jsonschema:"lines to show"`
}

// meta is the structuredContent.
type meta struct {
	Path       string `json:"path,omitempty" jsonschema:"the file, as it can be given back"`
	Type       string `json:"type,omitempty" jsonschema:"text, image, pdf, notebook, binary, directory or empty"`
	Size       int64  `json:"size,omitempty" jsonschema:"bytes"`
	Lines      int64  `json:"lines,omitempty" jsonschema:"lines the file has (PDF: pages)"`
	First      int64  `json:"first,omitempty" jsonschema:"first line shown"`
	Last       int64  `json:"last,omitempty" jsonschema:"last line shown"`
	Encoding   string `json:"encoding,omitempty"`
	Ending     string `json:"ending,omitempty" jsonschema:"lf, crlf, cr or mixed"`
	Etag       string `json:"etag,omitempty" jsonschema:"hash of the content"`
	Masked     bool   `json:"masked,omitempty" jsonschema:"values are hidden"`
	Truncated  bool   `json:"truncated" jsonschema:"there is more than shown"`
	NextOffset int64  `json:"next_offset,omitempty" jsonschema:"offset that continues"`
	Files      int    `json:"files,omitempty" jsonschema:"files asked for with paths"`
	Failed     int    `json:"failed,omitempty" jsonschema:"files that could not be shown"`
}

// viewer holds what calls share.
type viewer struct {
	box   *sandbox.Sandbox
	store *state.Store
}

// tools makes what the server serves.
func tools(box sandbox.Config, kept state.Config) ([]*mcpkit.Tool, error) {
	if err := box.Validate(); err != nil {
		return nil, err
	}
	if err := kept.Validate(); err != nil {
		return nil, err
	}
	box.ClientRoots = mcpkit.ClientRoots
	if dir := kept.Spilled(); dir != "" {
		box.Readable = append(box.Readable, dir)
	}
	v := &viewer{box: sandbox.New(box), store: state.New(kept)}
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "view", Title: "View file", Description: strings.TrimSpace(description),
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"View", "Read"},
		Timeout: deadline, MaxTokens: maxTokens, MaxConcurrent: maxConcurrent, Output: meta{},
	}, v.call)
	return []*mcpkit.Tool{tool}, err
}

// ask is what is wanted of one file.
type ask struct {
	name          string
	offset, limit int64 // 0: not given
	tail          int64
	section       string
	hex           bool
	encoding      textfile.Encoding
	metadata      bool
	budget        int // bytes of text
}

// ranged reports whether a part of the file was asked for.
func (a ask) ranged() bool { return a.offset > 0 || a.limit > 0 || a.tail > 0 || a.section != "" }

// answer is what is shown of one file.
type answer struct {
	text   string // header line first, ends in a newline
	images []mcpkit.Image
	meta   meta
}

func (v *viewer) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	asks, err := asksOf(args)
	if err != nil {
		return nil, err
	}
	fs, err := v.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	// The kit adds its notes to the text: leave room for a few.
	budget := max(mcpkit.Budget(ctx)-512, 256)
	if len(args.Paths) == 0 {
		asks[0].budget = budget
		a, err := v.show(ctx, fs, asks[0])
		if err != nil {
			return nil, err
		}
		return &mcpkit.Result{Text: a.text, Images: a.images, Meta: a.meta}, nil
	}
	return v.several(ctx, fs, asks, budget)
}

// asksOf checks the arguments and spreads them over the files.
func asksOf(args arguments) ([]ask, error) {
	all := ask{hex: args.Hex, metadata: args.Metadata}
	if args.Encoding != "" {
		e, err := textfile.ParseEncoding(args.Encoding)
		if err != nil {
			return nil, err
		}
		all.encoding = e
	}
	var asks []ask
	if args.FilePath != "" {
		a := all
		a.name, a.offset, a.limit, a.tail, a.section = args.FilePath, args.Offset, args.Limit, args.Tail, args.Section
		asks = append(asks, a)
	}
	for _, p := range args.Paths {
		a := all
		a.name, a.offset, a.limit = p.FilePath, p.Offset, p.Limit
		asks = append(asks, a)
	}
	switch {
	case len(asks) == 0:
		return nil, toolerr.New(toolerr.MissingParameter, "file_path is missing: name the file to view, or several in paths")
	case len(asks) > maxPaths:
		return nil, toolerr.New(toolerr.InvalidParams, "paths names %d files; at most %d go into one call", len(asks), maxPaths)
	case args.FilePath == "" && (args.Offset > 0 || args.Limit > 0 || args.Tail > 0 || args.Section != ""):
		return nil, toolerr.New(toolerr.InvalidParams, "offset, limit, tail and section are for file_path: give offset and limit in each of paths")
	case args.Tail > 0 && args.Offset > 0:
		return nil, toolerr.New(toolerr.InvalidParams, "offset and tail exclude each other: offset counts from the beginning, tail from the end")
	case args.Section != "" && (args.Tail > 0 || args.Offset > 0):
		return nil, toolerr.New(toolerr.InvalidParams, "section excludes offset and tail: view the section, or lines by number")
	}
	return asks, nil
}

// several shows files one after the other; what one leaves of its share of
// the budget, the next ones have. A file that fails does not fail the others.
func (v *viewer) several(ctx context.Context, fs *sandbox.FS, asks []ask, budget int) (*mcpkit.Result, error) {
	const tokenRoom = 300 // less than that is not worth a file's beginning
	var text strings.Builder
	result := &mcpkit.Result{}
	m := meta{Files: len(asks)}
	var first error
	for i, a := range asks {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		left := budget - text.Len()
		if left < tokenRoom && i > 0 {
			m.Truncated = true
			fmt.Fprintf(&text, "\nnote: %d more files do not fit; view %s and what follows in another call\n", len(asks)-i, sandbox.EscapeName(a.name))
			break
		}
		a.budget = max(left/(len(asks)-i), min(left, tokenRoom))
		if i > 0 {
			text.WriteByte('\n')
		}
		shown, err := v.show(ctx, fs, a)
		if err != nil {
			m.Failed++
			if first == nil {
				first = err
			}
			fmt.Fprintf(&text, "%s  error: %s (%s)\n", sandbox.EscapeName(a.name), err, toolerr.CodeOf(err))
			continue
		}
		text.WriteString(shown.text)
		result.Images = append(result.Images, shown.images...)
		m.Truncated = m.Truncated || shown.meta.Truncated
	}
	if m.Failed == len(asks) {
		return nil, toolerr.New(toolerr.CodeOf(first), "none of the %d files could be shown:\n%s", len(asks), text.String())
	}
	result.Text, result.Meta = text.String(), m
	return result, nil
}
