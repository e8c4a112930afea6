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

// arguments are the arguments of a call.
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
	otherToolArguments

	unlimited bool // the caller set no head_limit, or 0
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

// row is an entry of --structured: a line, or in the other modes a file.
type row struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
	// of the match, in characters from 1; set if Text is a part of the line
	Column   int    `json:"column,omitempty"`
	Context  bool   `json:"context,omitempty"`  // the line does not match
	Count    int    `json:"count,omitempty"`    // matches in the file
	Modified string `json:"modified,omitempty"` // RFC 3339
}

// grepper holds the state shared by calls. It is safe for concurrent use.
type grepper struct {
	box *sandbox.Sandbox
	Config
	large   *largeBuffer // the buffer for large files
	buffers *bufferPool
	cache   *searchCache // nil: --no-index
}

// newGrepper returns the shared state and the tools to serve.
func newGrepper(box sandbox.Config, st state.Config, c Config) (*grepper, []*mcpkit.Tool, error) {
	if err := errors.Join(box.Validate(), st.Validate(), c.Validate()); err != nil {
		return nil, nil, err
	}
	box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.FindNamed
	box.ReadableFor = st.OutputDir
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

// tool returns the tool grep.
func (g *grepper) tool() (*mcpkit.Tool, error) {
	return mcpkit.NewTool(mcpkit.Def{
		Name: "grep", Title: "Search in files", Description: strings.TrimSpace(description),
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"GrepTool", "Grep"},
		Timeout: g.Timeout, MaxConcurrent: maxConcurrent, Output: meta{}, Row: row{},
	}, g.call)
}

// call handles a call of the tool.
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

// run searches and returns the result of a call.
func (g *grepper) run(ctx context.Context, fsys *sandbox.FS, args arguments) (*mcpkit.Result, error) {
	started := time.Now()
	defer g.cache.pauseIndexing(fsys)()
	defer g.large.freeUnused()
	q, err := g.newQuery(ctx, fsys, args)
	if err != nil {
		return nil, err
	}
	f, err := q.searchTree(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	f.elapsed = time.Since(started)
	result, err := q.render(ctx, f)
	if err == nil && len(f.unknown) > 0 {
		g.cache.queueUnknown(f.abs, f.unknown)
	}
	return result, err
}
