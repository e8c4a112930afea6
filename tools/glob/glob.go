package main

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed glob.md
var description string

// arguments are the arguments of a call.
type arguments struct {
	Pattern  string   `json:"pattern" alias:"glob,glob_pattern,file_pattern,name_pattern,query"`
	Path     string   `json:"path,omitempty" alias:"@dir" jsonschema:"directory to search; default: first root"`
	Exclude  []string `json:"exclude,omitempty" alias:"@leave" bare:"true" jsonschema:"globs to exclude"`
	Hidden   bool     `json:"hidden,omitempty" alias:"include_hidden" default:"true" jsonschema:"include dotfiles"`
	NoIgnore bool     `json:"no_ignore,omitempty" alias:"no_ignore_vcs,include_ignored" default:"false"`
	Type     string   `json:"type,omitempty" enum:"f,d,any" default:"f" jsonschema:"f: files, d: directories"`
	Limit    int      `json:"limit,omitempty" alias:"@limit,head_limit" default:"100" min:"0" jsonschema:"0: no limit"`
	Offset   int      `json:"offset,omitempty" min:"0"`
	Sort     string   `json:"sort,omitempty" enum:"mtime,path" default:"mtime"`
	Absolute bool     `json:"absolute,omitempty" default:"false"`

	Respect *bool `json:"respect_git_ignore,omitempty" alias:"respect_gitignore" hidden:"true"` // argument of other tools
}

// translate converts arguments of other tools to this tool's arguments, and
// replaces the limit 0 by maxLimit.
func (a *arguments) translate() {
	if a.Limit == 0 || a.Limit > maxLimit {
		a.Limit = maxLimit
	}
	if a.Respect != nil {
		a.NoIgnore = !*a.Respect
	}
}

// meta is the result's metadata.
type meta struct {
	Count      int  `json:"count" jsonschema:"paths shown"`
	Total      int  `json:"total" jsonschema:"paths that match"`
	Truncated  bool `json:"truncated,omitempty" jsonschema:"not all paths are shown"`
	NextOffset int  `json:"next_offset,omitempty" jsonschema:"offset of the next page"`
	Ignored    int  `json:"ignored,omitempty" jsonschema:"ignored paths that were skipped"`
	Unreadable int  `json:"unreadable,omitempty" jsonschema:"directories that could not be read"`
	Partial    bool `json:"partial,omitempty" jsonschema:"the search stopped at its deadline"`
}

// row is a match in the structured result.
type row struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	Modified string `json:"modified,omitempty"` // RFC 3339; only with sort=mtime
	Secret   bool   `json:"secret,omitempty"`
}

// maxCacheBytes bounds the memory of a server's directory cache, enough for
// about 100 000 entries.
const maxCacheBytes = 8 << 20

// newTool returns the tool glob. timeout is the time after which a call returns
// partial results.
func newTool(box *sandbox.Sandbox, timeout time.Duration) (*mcpkit.Tool, error) {
	dirs := walk.NewCache(maxCacheBytes)
	return mcpkit.NewTool(mcpkit.Def{
		Name: "glob", Title: "Find files by name", Description: description,
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"GlobTool", "Glob"},
		Timeout: timeout, Output: meta{}, Row: row{},
	}, func(ctx context.Context, args arguments) (*mcpkit.Result, error) {
		fsys, err := box.FS(ctx)
		if err != nil {
			return nil, err
		}
		return run(ctx, fsys, dirs, args)
	})
}

// run searches and returns the result of a call.
func run(ctx context.Context, fsys *sandbox.FS, dirs *walk.Cache, args arguments) (*mcpkit.Result, error) {
	started := time.Now()
	q, err := newQuery(fsys, dirs, args)
	if err != nil {
		return nil, err
	}
	f, err := q.search(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	f.elapsed = time.Since(started)
	if f.total == 0 && !f.partial {
		if q.glob.Fault() != nil { // the pattern is not a plain file name either
			return nil, q.glob.Fault()
		}
		return q.noMatchResult(ctx, f)
	}
	return q.render(f, mcpkit.Budget(ctx)), nil
}
