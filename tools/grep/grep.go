package main

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed grep.md
var description string

// The values of output_mode.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

// defaultPerFile is the default of max_per_file if path is a directory.
const defaultPerFile = 20

// maxConcurrent bounds the memory of concurrent calls.
const maxConcurrent = 4

type arguments struct {
	Pattern    string   `json:"pattern" alias:"regex,regexp,query,search_pattern,search,-e" jsonschema:"ripgrep's (Rust's) regex syntax"`
	Path       string   `json:"path,omitempty" alias:"@dir,file_path,target_file" jsonschema:"file or directory; default: first root"`
	Glob       []string `json:"glob,omitempty" alias:"include,include_pattern,include_patterns,includes,file_pattern,file_glob,glob_pattern,-g" bare:"true" jsonschema:"only files that match, e.g. \"*.ts\"; \"!*_test.go\" excludes"`
	Exclude    []string `json:"exclude,omitempty" alias:"@leave" bare:"true" jsonschema:"globs to exclude"`
	Type       string   `json:"type,omitempty" alias:"file_type,-t" jsonschema:"file type, e.g. go, py, js"`
	OutputMode string   `json:"output_mode,omitempty" enum:"content,files_with_matches,count" default:"content"`
	After      *int     `json:"-A,omitempty" alias:"A,after,after_context,context_after,lines_after" min:"0"`
	Before     *int     `json:"-B,omitempty" alias:"B,before,before_context,context_before,lines_before" min:"0"`
	Context    *int     `json:"-C,omitempty" alias:"C,context,context_lines" min:"0"`
	IgnoreCase bool     `json:"-i,omitempty" alias:"i,ignore_case,case_insensitive" default:"false"`
	Number     bool     `json:"-n,omitempty" alias:"n,line_number,line_numbers,show_line_numbers" default:"true"`
	Only       bool     `json:"-o,omitempty" alias:"o,only_matching" default:"false" jsonschema:"only the matched text"`
	Multiline  bool     `json:"multiline,omitempty" alias:"-U" default:"false" jsonschema:"matches may span lines; . matches a newline"`
	Literal    bool     `json:"literal,omitempty" alias:"fixed_strings,fixed_string,is_literal,-F" default:"false"`
	NoIgnore   bool     `json:"no_ignore,omitempty" alias:"no_ignore_vcs,include_ignored,include_ignored_files" default:"false"`
	Hidden     bool     `json:"hidden,omitempty" alias:"include_hidden,-." default:"true" jsonschema:"include dotfiles"`
	HeadLimit  int      `json:"head_limit,omitempty" alias:"@limit,limit,max_matches,count" default:"100" min:"0" jsonschema:"matches (or files) shown; 0: no limit"`
	MaxPerFile int      `json:"max_per_file,omitempty" alias:"-m,max_matches_per_file" min:"1" jsonschema:"matches shown per file; default 20 unless path is a file"`
	Offset     int      `json:"offset,omitempty" min:"0"`
	Sort       string   `json:"sort,omitempty" enum:"mtime,path" default:"mtime"`
	foreign

	unlimited bool // no head_limit was wanted
}

// meta is the result's metadata.
type meta struct {
	Matches    int    `json:"matches,omitempty" jsonschema:"lines that match (with -o, matches), all files; not counted for files_with_matches"`
	Files      int    `json:"files" jsonschema:"files that match"`
	Searched   int    `json:"searched" jsonschema:"files searched"`
	Shown      int    `json:"shown,omitempty" jsonschema:"matches shown (files in the other modes); missing: all"`
	Truncated  bool   `json:"truncated,omitempty" jsonschema:"not all is shown"`
	NextOffset int    `json:"next_offset,omitempty" jsonschema:"offset of the next page"`
	Reduced    string `json:"reduced,omitempty" jsonschema:"reduced to fit the result limit: context, width, text or lines"`
	Ignored    int    `json:"ignored,omitempty" jsonschema:"minimum number of matching files that are ignored"`
	Skipped    int    `json:"skipped,omitempty" jsonschema:"files not searched: binary, too large, unreadable, secret or special"`
	Partial    bool   `json:"partial,omitempty" jsonschema:"the search stopped at its deadline"`
}

// row is one line, or one file in the other modes, in the output of
// --structured.
type row struct {
	Path     string `json:"path"`
	Line     int    `json:"line,omitempty"`
	Text     string `json:"text,omitempty"`
	Column   int    `json:"column,omitempty"` // of the match, in characters, if Text is a part of the line
	Context  bool   `json:"context,omitempty"`
	Count    int    `json:"count,omitempty"`
	Modified string `json:"modified,omitempty"` // RFC 3339
}

// grepper holds the state shared by calls.
type grepper struct {
	box *sandbox.Sandbox
	Config
	large   *largeBuffer
	buffers *bufferPool
	cache   *searchCache // nil: no cache
}

// newGrepper returns the server's shared state and its tool.
func newGrepper(box sandbox.Config, st state.Config, c Config) (*grepper, []*mcpkit.Tool, error) {
	if err := errors.Join(box.Validate(), st.Validate(), c.Validate()); err != nil {
		return nil, nil, err
	}
	box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.Named
	box.ReadableFor = st.SpilledFor
	g := &grepper{box: sandbox.New(box), Config: c, large: newLargeBuffer(), buffers: newBufferPool()}
	if c.IndexSize > 0 && !c.NoIndex {
		g.cache = newSearchCache(c.IndexSize)
	}
	tool, err := g.tool()
	return g, []*mcpkit.Tool{tool}, err
}

// close stops background work. It does nothing for a nil grepper.
func (g *grepper) close() {
	if g != nil {
		g.cache.close()
	}
}

func (g *grepper) tool() (*mcpkit.Tool, error) {
	return mcpkit.NewTool(mcpkit.Def{
		Name: "grep", Title: "Search in files", Description: strings.TrimSpace(description),
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"GrepTool", "Grep"},
		Timeout: g.Timeout, MaxConcurrent: maxConcurrent, Output: meta{}, Row: row{},
	}, g.call)
}

func (g *grepper) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	if err := args.translate(ctx); err != nil {
		return nil, err
	}
	fsys, err := g.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	return g.run(ctx, fsys, args)
}

// run carries out one call.
func (g *grepper) run(ctx context.Context, fsys *sandbox.FS, args arguments) (*mcpkit.Result, error) {
	started := time.Now()
	defer g.cache.begin(fsys)()
	defer g.large.drop()
	q, err := g.newQuery(ctx, fsys, args)
	if err != nil {
		return nil, err
	}
	f, err := q.find(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	f.elapsed = time.Since(started)
	result, err := q.answer(ctx, f)
	if err == nil && len(f.unknown) > 0 {
		g.cache.learn(f.abs, f.unknown)
	}
	return result, err
}
