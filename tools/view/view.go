package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

//go:embed view.md
var description string

// arguments are the arguments of a call.
type arguments struct {
	FilePath string `json:"file_path,omitempty" alias:"@file" jsonschema:"absolute, or relative to the first root; or use paths"`
	Offset   int64  `json:"offset,omitempty" min:"0" jsonschema:"first line (PDF: page; hex: byte)"`
	Limit    int64  `json:"limit,omitempty" alias:"max_lines,num_lines,line_count,head" min:"0" jsonschema:"lines (PDF: pages; hex: bytes); default 2000"`
	Tail     int64  `json:"tail,omitempty" min:"1"`
	Section  string `json:"section,omitempty" alias:"find_section,heading,symbol"`
	Paths    []part `json:"paths,omitempty" alias:"files,file_paths"`
	Hex      bool   `json:"hex,omitempty" default:"false" jsonschema:"show bytes in hexadecimal"`
	Encoding string `json:"encoding,omitempty" jsonschema:"default: detected"`
	Metadata bool   `json:"metadata,omitempty" default:"false" jsonschema:"show type, size and times, not content"`
	lineRange
	Pages   json.RawMessage `json:"pages,omitempty" alias:"page,page_range" hidden:"true"`
	Command string          `json:"command,omitempty" hidden:"true"` // argument of Anthropic's text editor tool
}

// part is an element of paths.
type part struct {
	FilePath string `json:"file_path" alias:"@file"`
	Offset   int64  `json:"offset,omitempty" min:"0"`
	Limit    int64  `json:"limit,omitempty" alias:"max_lines,num_lines,line_count" min:"0"`
	lineRange
}

// meta is the result's metadata.
type meta struct {
	Path       string `json:"path,omitempty" jsonschema:"the file's path, usable in later calls"`
	Type       string `json:"type,omitempty" jsonschema:"image, pdf, notebook, binary, directory or empty; missing: text"`
	Size       int64  `json:"size,omitempty" jsonschema:"bytes"`
	Lines      int64  `json:"lines,omitempty" jsonschema:"lines in the file (PDF: pages)"`
	First      int64  `json:"first,omitempty" jsonschema:"first line shown"`
	Last       int64  `json:"last,omitempty" jsonschema:"last line shown"`
	Encoding   string `json:"encoding,omitempty" jsonschema:"missing: utf-8"`
	Ending     string `json:"ending,omitempty" jsonschema:"crlf, cr or mixed; missing: lf"`
	Etag       string `json:"etag,omitempty" jsonschema:"hash of the content"`
	Masked     bool   `json:"masked,omitempty" jsonschema:"values are hidden"`
	Truncated  bool   `json:"truncated,omitempty" jsonschema:"not all is shown"`
	NextOffset int64  `json:"next_offset,omitempty" jsonschema:"offset that continues"`
	Files      int    `json:"files,omitempty" jsonschema:"files asked for with paths"`
	Failed     int    `json:"failed,omitempty" jsonschema:"files that could not be shown"`
}

// viewer is the state of the tool view, which all calls share. It is safe for concurrent
// use.
type viewer struct {
	box   *sandbox.Sandbox
	store *state.Store
}

// newTools validates the settings and returns the tools to serve.
func newTools(box sandbox.Config, kept state.Config) ([]*mcpkit.Tool, error) {
	if err := box.Validate(); err != nil {
		return nil, err
	}
	if err := kept.Validate(); err != nil {
		return nil, err
	}
	box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.FindNamed
	box.ReadableFor = kept.OutputDir
	v := &viewer{box: sandbox.New(box), store: state.New(kept)}
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "view", Title: "View file", Description: strings.TrimSpace(description),
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"View", "Read"},
		Timeout: deadline, MaxTokens: maxTokens, MaxConcurrent: maxConcurrent, Output: meta{},
		// Without this, Claude Code writes results of more than 50 000
		// characters to a file and shows the model the first 2 KB.
		// maxTokens corresponds to 80 000 bytes, plus notes.
		Meta: map[string]any{"anthropic/maxResultSizeChars": 100_000},
	}, v.call)
	return []*mcpkit.Tool{tool}, err
}

// answer is the result for one file.
type answer struct {
	text   string         // begins with the header line, ends in a newline
	images []mcpkit.Image // to send with text
	meta   meta
}

// call handles a call of the tool.
func (v *viewer) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	asks, err := newRequests(ctx, args)
	if err != nil {
		return nil, err
	}
	fsys, err := v.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	// Reserve space for notes added by mcpkit.
	budget := max(mcpkit.Budget(ctx)-512, 256)
	if len(args.Paths) == 0 {
		asks[0].budget = budget
		a, err := v.viewFile(ctx, fsys, asks[0])
		if err != nil {
			return nil, err
		}
		return &mcpkit.Result{Text: a.text, Images: a.images, Meta: a.meta.withoutDefaults(asks[0])}, nil
	}
	return v.viewFiles(ctx, fsys, asks, budget)
}

// viewFiles shows several files. Budget that a file does not use is available
// to the next files. An error is shown in the file's place, unless all files
// fail.
func (v *viewer) viewFiles(ctx context.Context, fsys *sandbox.FS, asks []request, budget int) (*mcpkit.Result, error) {
	const tokenRoom = 300 // less space is not enough for the beginning of a file
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
			fmt.Fprintf(&text, "\nnote: %d more files do not fit; view %s and the rest in another call\n", len(asks)-i, pathname.Escape(a.name))
			break
		}
		a.budget = max(left/(len(asks)-i), min(left, tokenRoom))
		if i > 0 {
			text.WriteByte('\n')
		}
		shown, err := v.viewFile(ctx, fsys, a)
		if err != nil {
			m.Failed++
			if first == nil {
				first = err
			}
			fmt.Fprintf(&text, "%s  error: %s (%s)\n", pathname.Escape(a.name), err, toolerr.CodeOf(err))
			continue
		}
		text.WriteString(shown.text)
		result.Images = append(result.Images, shown.images...)
		m.Truncated = m.Truncated || shown.meta.Truncated
	}
	if m.Failed == len(asks) {
		return nil, toolerr.New(toolerr.CodeOf(first), "none of the %d files could be read:\n%s", len(asks), text.String())
	}
	result.Text, result.Meta = text.String(), m
	return result, nil
}
