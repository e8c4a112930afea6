package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

//go:embed replace.md
var description string

// Config holds the settings of the tool's own flags. The zero value has the
// defaults.
type Config struct {
	// RequireView refuses to replace a file that was never viewed, unless
	// the call gives its etag.
	RequireView bool
	// KeepHardlinks writes a file with several hard links in place, so that
	// every link shows the change. Otherwise the written name gets a new
	// file.
	KeepHardlinks bool
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.BoolVar(&c.RequireView, "require-view", c.RequireView, "refuse to replace a file that was never viewed, unless its etag is given")
	flags.BoolVar(&c.KeepHardlinks, "keep-hardlinks", c.KeepHardlinks, "write files with several hard links in place, so that every link shows the change")
}

// meta is the metadata of a result.
type meta struct {
	Path      string `json:"path,omitempty" jsonschema:"the file's path, usable in later calls"`
	Created   bool   `json:"created,omitempty" jsonschema:"there was no file before"`
	Unchanged bool   `json:"unchanged,omitempty" jsonschema:"the file already had this content, nothing was written"`
	DryRun    bool   `json:"dry_run,omitempty" jsonschema:"nothing was written"`
	Lines     int64  `json:"lines" jsonschema:"lines of the new content"`
	Size      int64  `json:"size" jsonschema:"bytes of the new content"`
	Added     int    `json:"added,omitempty" jsonschema:"lines"`
	Removed   int    `json:"removed,omitempty" jsonschema:"lines"`
	Etag      string `json:"etag,omitempty" jsonschema:"hash of the new content"`
	Warnings  int    `json:"warnings,omitempty" jsonschema:"warnings in the text"`
}

// replacer is the state of the tool replace, which all calls share. It is safe for
// concurrent use.
type replacer struct {
	sandbox     *sandbox.Sandbox
	rewriter    *fileedit.Rewriter
	requireView bool
}

// newTools returns the tool replace. It returns an error for an invalid
// configuration.
func newTools(sandboxConfig sandbox.Config, stateConfig state.Config, config Config) ([]*mcpkit.Tool, error) {
	if err := errors.Join(sandboxConfig.Validate(), stateConfig.Validate()); err != nil {
		return nil, err
	}
	sandboxConfig.ClientRoots, sandboxConfig.Finder = mcpkit.ClientRoots, walk.FindNamed
	if dir := stateConfig.Directory(); dir != "" {
		sandboxConfig.Protect = append(sandboxConfig.Protect, dir)
	}
	r := &replacer{
		sandbox:     sandbox.New(sandboxConfig),
		rewriter:    &fileedit.Rewriter{Store: state.New(stateConfig), Tool: "replace", KeepHardlinks: config.KeepHardlinks},
		requireView: config.RequireView,
	}
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "replace", Title: "Write file", Description: strings.TrimSpace(description),
		Hints:         mcpkit.Hints{Destructive: true, Idempotent: true},
		Aliases:       []string{"Replace", "Write"},
		RefuseUnknown: true,
		Timeout:       callTimeout, MaxConcurrent: maxConcurrentCalls, Output: meta{},
	}, r.call)
	return []*mcpkit.Tool{tool}, err
}

// call handles a call of the tool.
func (r *replacer) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	if err := args.normalize(); err != nil {
		return nil, err
	}
	fsys, err := r.sandbox.FS(ctx)
	if err != nil {
		return nil, err
	}
	var p *plan
	done, err := r.rewriter.Rewrite(ctx, fsys, args.FilePath, fileedit.Options{DryRun: args.DryRun, Session: mcpkit.ClientSession(ctx)}, func(b *fileedit.Before) (*fileedit.After, error) {
		p = &plan{arguments: args, before: b, requireView: r.requireView}
		return p.newContent(ctx, fsys)
	})
	if err != nil {
		return nil, err
	}
	return p.render(ctx, done), nil
}
