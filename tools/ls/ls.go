package main

import (
	"context"
	_ "embed"

	"github.com/toolroom-mcp/toolroom/internal/dirtree"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed ls.md
var description string

// arguments are the arguments of a call.
type arguments struct {
	Path     string   `json:"path,omitempty" alias:"@dir,file_path" jsonschema:"directory to list; default: first root"`
	Depth    int      `json:"depth,omitempty" alias:"max_depth,level,levels" default:"2" min:"1" max:"20"`
	Ignore   []string `json:"ignore,omitempty" alias:"@leave,exclude" bare:"true" jsonschema:"globs to exclude"`
	Hidden   bool     `json:"hidden,omitempty" alias:"show_hidden,include_hidden,all" default:"true" jsonschema:"show dotfiles"`
	NoIgnore bool     `json:"no_ignore,omitempty" alias:"no_ignore_vcs,include_ignored" default:"false"`
	Limit    int      `json:"limit,omitempty" alias:"@limit,head_limit" default:"400" min:"0" jsonschema:"0: no limit"`
	Offset   int      `json:"offset,omitempty" min:"0"`
	Long     bool     `json:"long,omitempty" alias:"long_format,details" default:"false" jsonschema:"show mode and modification time"`

	// Hidden arguments that other tools have.
	Recursive *bool `json:"recursive,omitempty" hidden:"true"`
	Respect   *bool `json:"respect_git_ignore,omitempty" alias:"respect_gitignore" hidden:"true"`
}

// translate converts arguments of other tools to this tool's arguments, and
// replaces the limit 0 by maxLimit.
func (a *arguments) translate(ctx context.Context) {
	if a.Limit == 0 || a.Limit > maxLimit {
		a.Limit = maxLimit
	}
	if a.Recursive != nil && *a.Recursive {
		a.Depth = maxDepth
		mcpkit.NoteFirstf(ctx, "recursive taken as depth=%d", maxDepth)
	} else if a.Recursive != nil {
		a.Depth = 1
		mcpkit.NoteFirstf(ctx, "recursive=false taken as depth=1")
	}
	if a.Respect != nil {
		a.NoIgnore = !*a.Respect
	}
}

// meta is the result's metadata.
type meta struct {
	Count      int  `json:"count" jsonschema:"entries shown"`
	Total      int  `json:"total" jsonschema:"all entries down to depth"`
	AtLeast    bool `json:"total_at_least,omitempty" jsonschema:"the real total is larger"`
	Truncated  bool `json:"truncated,omitempty" jsonschema:"not all entries are shown"`
	NextOffset int  `json:"next_offset,omitempty" jsonschema:"offset of the next page"`
	Ignored    int  `json:"ignored,omitempty" jsonschema:"ignored files that are not shown"`
	Unreadable int  `json:"unreadable,omitempty" jsonschema:"directories that could not be read"`
	Git        bool `json:"git,omitempty" jsonschema:"the git status is shown"`
}

// newTool returns the tool ls.
func newTool(box *sandbox.Sandbox) (*mcpkit.Tool, error) {
	return mcpkit.NewTool(mcpkit.Def{
		Name: "ls", Title: "List directory", Description: description,
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"LS"},
		Output:  meta{}, Row: dirtree.Row{},
	}, func(ctx context.Context, args arguments) (*mcpkit.Result, error) {
		fsys, err := box.FS(ctx)
		if err != nil {
			return nil, err
		}
		return run(ctx, fsys, args)
	})
}

// run lists the directory and returns the result of a call.
func run(ctx context.Context, fsys *sandbox.FS, args arguments) (*mcpkit.Result, error) {
	args.translate(ctx)
	note := ""
	if args.Path == "" {
		note = fsys.RootNote()
	}
	page, err := dirtree.Tree(ctx, fsys, args.Path, dirtree.Options{
		Note:  note,
		Depth: args.Depth, Ignore: args.Ignore, SkipHidden: !args.Hidden, NoIgnore: args.NoIgnore,
		Limit: args.Limit, Offset: args.Offset, Long: args.Long, Budget: mcpkit.Budget(ctx),
	})
	if err != nil {
		return nil, err
	}
	return &mcpkit.Result{
		Text: dirtree.Render(page),
		Rows: page.Rows,
		Meta: meta{
			Count: len(page.Rows), Total: page.Total, AtLeast: !page.TotalExact,
			Truncated: page.NextOffset > 0, NextOffset: page.NextOffset,
			Ignored: page.Ignored, Unreadable: page.Unreadable, Git: page.GitAnswered,
		},
	}, nil
}
