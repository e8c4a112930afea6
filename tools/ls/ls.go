package main

import (
	"context"
	_ "embed"

	"github.com/toolroom-mcp/toolroom/pkg/listing"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed ls.md
var description string

type arguments struct {
	Path     string   `json:"path,omitempty" jsonschema:"directory, or a file for its one row; default the root"`
	Depth    int      `json:"depth,omitempty" default:"2" min:"1" max:"20" jsonschema:"levels to show"`
	Ignore   []string `json:"ignore,omitempty" alias:"ignore_pattern" bare:"true" jsonschema:"globs of entries to leave out"`
	Hidden   bool     `json:"hidden,omitempty" default:"true" jsonschema:"also names that begin with a dot (.git never)"`
	NoIgnore bool     `json:"no_ignore,omitempty" default:"false" jsonschema:"also what .gitignore and the like ignore"`
	Limit    int      `json:"limit,omitempty" default:"400" min:"1" max:"10000" jsonschema:"entries to show"`
	Offset   int      `json:"offset,omitempty" default:"0" min:"0" jsonschema:"entries to pass over, to go on"`
	Long     bool     `json:"long,omitempty" default:"false" jsonschema:"add mode and modification time"`
}

// meta is the structuredContent.
type meta struct {
	Count      int  `json:"count" jsonschema:"entries shown"`
	Total      int  `json:"total" jsonschema:"entries there are down to depth"`
	TotalExact bool `json:"total_exact" jsonschema:"false: there are more than total"`
	Truncated  bool `json:"truncated" jsonschema:"there are more than shown"`
	NextOffset int  `json:"next_offset,omitempty" jsonschema:"offset of the next page"`
	Ignored    int  `json:"ignored,omitempty" jsonschema:"ignored files that are not shown"`
	Unreadable int  `json:"unreadable,omitempty" jsonschema:"directories that could not be read"`
	Git        bool `json:"git" jsonschema:"git told what changed"`
}

func newTool(box *sandbox.Sandbox) (*mcpkit.Tool, error) {
	return mcpkit.NewTool(mcpkit.Def{
		Name: "ls", Title: "List directory", Description: description,
		Hints:   mcpkit.Hints{ReadOnly: true, Idempotent: true},
		Aliases: []string{"LS"},
		Output:  meta{},
	}, func(ctx context.Context, args arguments) (*mcpkit.Result, error) {
		fs, err := box.FS(ctx)
		if err != nil {
			return nil, err
		}
		return run(ctx, fs, args)
	})
}

// run makes one call.
func run(ctx context.Context, fs *sandbox.FS, args arguments) (*mcpkit.Result, error) {
	page, err := listing.Tree(ctx, fs, args.Path, listing.Options{
		Depth: args.Depth, Ignore: args.Ignore, SkipHidden: !args.Hidden, NoIgnore: args.NoIgnore,
		Limit: args.Limit, Offset: args.Offset, Long: args.Long, Budget: mcpkit.Budget(ctx),
	})
	if err != nil {
		return nil, err
	}
	return &mcpkit.Result{
		Text: listing.Render(page),
		Rows: page.Rows,
		Meta: meta{
			Count: len(page.Rows), Total: page.Total, TotalExact: page.TotalExact,
			Truncated: page.NextOffset > 0, NextOffset: page.NextOffset,
			Ignored: page.Ignored, Unreadable: page.Unreadable, Git: page.GitAnswered,
		},
	}, nil
}
