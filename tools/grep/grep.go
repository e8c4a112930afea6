package main

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/state"
)

//go:embed grep.md
var description string

// The values of output_mode.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

// defaultPerFile is max_per_file where path is a directory.
const defaultPerFile = 20

// maxConcurrent bounds the memory of calls side by side.
const maxConcurrent = 4

type arguments struct {
	Pattern    string   `json:"pattern" jsonschema:"regular expression (RE2 syntax, Unicode), matched in each line"`
	Path       string   `json:"path,omitempty" jsonschema:"directory or file to search; default the root"`
	Glob       []string `json:"glob,omitempty" alias:"include" bare:"true" jsonschema:"only files that match one of these globs, as \"*.ts\" or \"src/**/*.{c,h}\"; !glob leaves out"`
	Exclude    []string `json:"exclude,omitempty" bare:"true" jsonschema:"globs of files and directories to leave out"`
	Type       string   `json:"type,omitempty" jsonschema:"only files of this type, by ripgrep's name: go, py, js, ts, rust, java, md, …"`
	OutputMode string   `json:"output_mode,omitempty" enum:"content,files_with_matches,count" default:"content" jsonschema:"lines, only paths, or matches counted a file"`
	After      *int     `json:"-A,omitempty" min:"0" max:"10000" jsonschema:"lines of context after each match"`
	Before     *int     `json:"-B,omitempty" min:"0" max:"10000" jsonschema:"lines of context before each match"`
	Context    *int     `json:"-C,omitempty" alias:"context" min:"0" max:"10000" jsonschema:"lines of context on both sides"`
	IgnoreCase bool     `json:"-i,omitempty" alias:"ignore_case" default:"false" jsonschema:"ignore case"`
	Number     bool     `json:"-n,omitempty" default:"true" jsonschema:"show line numbers"`
	Only       bool     `json:"-o,omitempty" default:"false" jsonschema:"show only what matched, each match by itself"`
	Multiline  bool     `json:"multiline,omitempty" default:"false" jsonschema:"a match may span lines, and . matches newlines"`
	Literal    bool     `json:"literal,omitempty" default:"false" jsonschema:"the pattern is plain text"`
	NoIgnore   bool     `json:"no_ignore,omitempty" alias:"no_ignore_vcs" default:"false" jsonschema:"also what .gitignore and the like ignore"`
	Hidden     bool     `json:"hidden,omitempty" default:"true" jsonschema:"also names that begin with a dot (.git never)"`
	HeadLimit  int      `json:"head_limit,omitempty" default:"100" min:"1" max:"100000" jsonschema:"matches (or files) to show"`
	MaxPerFile int      `json:"max_per_file,omitempty" min:"1" max:"100000" jsonschema:"matches to show of one file; 20 unless path is a file"`
	Offset     int      `json:"offset,omitempty" default:"0" min:"0" jsonschema:"matches (or files) to pass over, to go on"`
	Sort       string   `json:"sort,omitempty" enum:"mtime,path" default:"mtime" jsonschema:"order of files; mtime: newest first"`
}

// meta is the structuredContent.
type meta struct {
	Matches    int    `json:"matches,omitempty" jsonschema:"lines that match (with -o, matches), all files; not counted for files_with_matches"`
	Files      int    `json:"files" jsonschema:"files that match"`
	Searched   int    `json:"searched" jsonschema:"files searched"`
	Shown      int    `json:"shown" jsonschema:"matches shown; files in the other modes"`
	Truncated  bool   `json:"truncated" jsonschema:"there is more than shown"`
	NextOffset int    `json:"next_offset,omitempty" jsonschema:"offset of the next page"`
	Reduced    string `json:"reduced,omitempty" jsonschema:"what was left out so that the result fits: context, width, text or lines"`
	Ignored    int    `json:"ignored,omitempty" jsonschema:"matching files that are ignored, at the least"`
	Skipped    int    `json:"skipped,omitempty" jsonschema:"files not searched: binary, too large, unreadable, secret or special"`
	Partial    bool   `json:"partial,omitempty" jsonschema:"the search was stopped by its deadline"`
}

// row is one line, or one file in the other modes, as --structured shows it.
type row struct {
	Path     string `json:"path"`
	Line     int    `json:"line,omitempty"`
	Text     string `json:"text,omitempty"`
	Column   int    `json:"column,omitempty"` // of the match, in characters, where Text is a part of the line
	Context  bool   `json:"context,omitempty"`
	Count    int    `json:"count,omitempty"`
	Modified string `json:"modified,omitempty"` // RFC 3339
}

// grepper holds what calls share.
type grepper struct {
	box *sandbox.Sandbox
	Config
	large *slot
	space *space
	warm  *warmth // nil: none
}

// newGrepper makes what the server serves.
func newGrepper(box sandbox.Config, st state.Config, c Config) (*grepper, []*mcpkit.Tool, error) {
	if err := errors.Join(box.Validate(), st.Validate(), c.Validate()); err != nil {
		return nil, nil, err
	}
	box.ClientRoots = mcpkit.ClientRoots
	if dir := st.Spilled(); dir != "" {
		box.Readable = append(box.Readable, dir)
	}
	g := &grepper{box: sandbox.New(box), Config: c, large: newSlot(), space: newSpace()}
	if c.IndexSize > 0 && !c.NoIndex {
		g.warm = newWarmth(c.IndexSize)
	}
	tool, err := g.tool()
	return g, []*mcpkit.Tool{tool}, err
}

// close ends what goes on behind the answers. A nil grepper has nothing.
func (g *grepper) close() {
	if g != nil {
		g.warm.close()
	}
}

func (g *grepper) tool() (*mcpkit.Tool, error) {
	return mcpkit.NewTool(mcpkit.Def{
		Name: "grep", Title: "Search in files", Description: strings.TrimSpace(description),
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"GrepTool", "Grep"},
		Timeout: g.Timeout, MaxConcurrent: maxConcurrent, Output: meta{},
	}, g.call)
}

func (g *grepper) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	fs, err := g.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	return g.run(ctx, fs, args)
}

// run makes one call.
func (g *grepper) run(ctx context.Context, fs *sandbox.FS, args arguments) (*mcpkit.Result, error) {
	started := time.Now()
	defer g.warm.begin(fs)()
	defer g.large.drop()
	q, err := g.newQuery(ctx, fs, args)
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
		g.warm.learn(f.abs, f.unknown)
	}
	return result, err
}
