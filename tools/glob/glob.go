package main

import (
	"context"
	_ "embed"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

//go:embed glob.md
var description string

// defaultTimeout is the time after which a call returns partial results.
const defaultTimeout = 10 * time.Second

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

const maxLimit = 100_000

// translate converts arguments of other tools, and the limit 0.
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

// maxRemembered bounds the memory of a server's directory cache in bytes,
// enough for about 100 000 entries.
const maxRemembered = 8 << 20

func newTool(box *sandbox.Sandbox, timeout time.Duration) (*mcpkit.Tool, error) {
	dirs := walk.NewCache(maxRemembered)
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

// run handles one call.
func run(ctx context.Context, fsys *sandbox.FS, dirs *walk.Cache, args arguments) (*mcpkit.Result, error) {
	started := time.Now()
	q, err := newQuery(fsys, dirs, args)
	if err != nil {
		return nil, err
	}
	f, err := q.find(ctx)
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
		return q.nothing(ctx, f)
	}
	return q.render(f, mcpkit.Budget(ctx)), nil
}

// query is a validated call.
type query struct {
	args    arguments
	fs      *sandbox.FS
	dirs    *walk.Cache
	dir     string // starting directory, as given
	glob    *glob.Glob
	pattern string // relative to dir
	exclude []*glob.Glob
	missing error  // error if the pattern's literal directories do not exist, or nil
	inDir   string // how results show dir, if the pattern leads there through a link
	abs     string // absolute path of dir, set once it is open
}

func newQuery(fsys *sandbox.FS, dirs *walk.Cache, args arguments) (*query, error) {
	args.translate()
	q := &query{args: args, fs: fsys, dirs: dirs, dir: args.Path, pattern: args.Pattern}
	if q.dir == "" {
		q.dir = "."
	}
	if dir, rest, ok := splitAbsolute(args.Pattern); ok {
		q.dir, q.pattern = dir, rest
	}
	var err error
	if q.glob, err = compile(q.pattern); err != nil {
		return nil, err
	}
	for _, pattern := range args.Exclude {
		g, err := glob.Compile(pattern)
		if err == nil {
			err = g.Fault()
		}
		if err != nil {
			return nil, err
		}
		q.exclude = append(q.exclude, g)
	}
	if q.glob.DirOnly() {
		q.args.Type = "d"
	}
	return q, q.followPrefix()
}

// compile parses a pattern. Results show names with control characters and the
// like with escapes (\n, \xff). A pattern copied from a result also matches the
// escaped name.
func compile(pattern string) (*glob.Glob, error) {
	g, err := glob.Compile(pattern)
	if err != nil || filepath.Separator == '\\' {
		return g, err
	}
	name, ok := pathname.Unescape(pattern)
	if !ok || name == pattern || strings.ReplaceAll(name, `\`, `\\`) == pattern {
		return g, nil
	}
	shown, err := glob.Compile(strings.ReplaceAll(name, `\`, `\\`))
	if err != nil {
		return g, nil
	}
	return g.Or(shown), nil
}

// splitAbsolute splits an absolute pattern into the directory that contains all
// matches and the pattern relative to it, anchored there. ok is false if the
// pattern is not absolute.
func splitAbsolute(pattern string) (dir, rest string, ok bool) {
	text := glob.Slashes(pattern)
	if !filepath.IsAbs(filepath.FromSlash(text)) {
		return "", "", false
	}
	volume := filepath.VolumeName(filepath.FromSlash(text))
	parts := strings.Split(text[len(volume):], "/")
	plain := 0
	for plain < len(parts)-1 && !glob.HasMeta(parts[plain]) {
		plain++
	}
	for plain > 1 && strings.Join(parts[plain:], "") == "" { // trailing slashes
		plain--
	}
	return volume + strings.Join(parts[:plain], "/") + "/", "/" + strings.Join(parts[plain:], "/"), true
}

// explain adds the likely cause to an error from opening the starting
// directory.
func (q *query) explain(err error) error {
	if q.pattern != q.args.Pattern && toolerr.Is(err, toolerr.OutsideRoot) {
		if _, failed := q.fs.Quiet().Stat(q.args.Pattern); failed == nil { // a root, whose parent is outside the roots
			return toolerr.New(toolerr.BadPattern, "%s is the directory to search, not a pattern: %q lists the files in it",
				pathname.Escape(q.args.Pattern), strings.TrimRight(q.args.Pattern, "/")+"/**")
		}
		return toolerr.New(toolerr.OutsideRoot, `%w (a pattern relative to path does not begin with "/")`, err)
	}
	return err
}

// followPrefix opens the literal directories at the beginning of the pattern. A
// walk follows no symbolic link, but a link that the caller names is followed.
func (q *query) followPrefix() error {
	prefix := q.glob.Prefix()
	if prefix == "" {
		return nil
	}
	start, err := q.fs.OpenDir(q.dir)
	if err != nil {
		return q.explain(err)
	}
	defer start.Close()
	below := filepath.Join(q.dir, filepath.FromSlash(prefix))
	dir, err := q.fs.OpenDir(below)
	switch code := toolerr.CodeOf(err); code {
	case "":
	case toolerr.NotFound, toolerr.NotADirectory:
		q.missing = err
		return nil
	default:
		return err
	}
	defer dir.Close()
	if dir.Path() != filepath.Join(start.Path(), filepath.FromSlash(prefix)) {
		q.inDir = path.Join(q.fs.Display(start.Path()), pathname.Escape(prefix))
		q.dir, q.glob = below, q.glob.Below()
	}
	return nil
}

// excluded reports whether a path is excluded; for a directory, this includes
// everything below it.
func (q *query) excluded(path string, isDir bool) bool {
	for _, g := range q.exclude {
		if g.MatchEntry(path, isDir) {
			return true
		}
	}
	return false
}
