package main

import (
	"context"
	_ "embed"
	"flag"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

//go:embed edit.md
var description string

// Config holds the settings of the tool's own flags. The zero value has the
// defaults.
type Config struct {
	// KeepHardlinks writes a file with several hard links in place, so that
	// every link shows the change. Otherwise the edited name gets a new
	// file.
	KeepHardlinks bool
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.BoolVar(&c.KeepHardlinks, "keep-hardlinks", c.KeepHardlinks, "write files with several hard links in place, so that every link shows the change")
}

// editor is the state of the tool edit, which all calls share. It is safe for concurrent
// use.
type editor struct {
	sandbox  *sandbox.Sandbox
	rewriter *fileedit.Rewriter
}

// newTools returns the tool edit. It returns an error for an invalid
// configuration.
func newTools(sandboxConfig sandbox.Config, stateConfig state.Config, config Config) ([]*mcpkit.Tool, error) {
	if err := sandboxConfig.Validate(); err != nil {
		return nil, err
	}
	if err := stateConfig.Validate(); err != nil {
		return nil, err
	}
	sandboxConfig.ClientRoots, sandboxConfig.Finder = mcpkit.ClientRoots, walk.FindNamed
	if dir := stateConfig.Directory(); dir != "" {
		sandboxConfig.Protect = append(sandboxConfig.Protect, dir)
	}
	e := &editor{
		sandbox:  sandbox.New(sandboxConfig),
		rewriter: &fileedit.Rewriter{Store: state.New(stateConfig), Tool: "edit", KeepHardlinks: config.KeepHardlinks},
	}
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "edit", Title: "Edit file", Description: strings.TrimSpace(description),
		Hints:         mcpkit.Hints{Destructive: true},
		Aliases:       []string{"Edit"},
		RefuseUnknown: true,
		Timeout:       callTimeout, MaxConcurrent: maxConcurrentCalls, Output: meta{},
	}, e.call)
	return []*mcpkit.Tool{tool}, err
}

// call handles a call of the tool.
func (e *editor) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	if err := args.translate(); err != nil {
		return nil, err
	}
	r, err := newRequest(args)
	if err != nil {
		return nil, err
	}
	fsys, err := e.sandbox.FS(ctx)
	if err != nil {
		return nil, err
	}
	if r.undo {
		return e.undo(ctx, fsys, r)
	}
	return e.edit(ctx, fsys, r)
}

// edit changes the file, unless it is a dry run, and returns the answer.
func (e *editor) edit(ctx context.Context, fsys *sandbox.FS, r request) (*mcpkit.Result, error) {
	var c *change
	done, err := e.rewriter.Rewrite(ctx, fsys, r.path, fileedit.Options{DryRun: r.dryRun, Session: mcpkit.ClientSession(ctx)}, func(b *fileedit.Before) (*fileedit.After, error) {
		if !b.Exists && !r.createsFile() {
			return nil, notFoundError(fsys, r.path, b)
		}
		var err error
		if c, err = r.planChange(ctx, b); err != nil {
			return nil, err
		}
		c.after.Encoding, c.after.Guessed, c.after.EncodingNamed = c.nonUTF8Encoding(), c.file.Guessed, c.encodingNamed
		c.after.Executable = !b.Exists && strings.HasPrefix(r.edits[0].New, "#!")
		return c.after, context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	return r.render(ctx, c, done), nil
}

// notFoundError returns NOT_FOUND with similar names for a file that does not
// exist, or the reason why the file cannot be opened.
func notFoundError(fsys *sandbox.FS, path string, b *fileedit.Before) error {
	file, err := fsys.Open(path)
	if err == nil { // it has appeared
		file.Close()
		err = toolerr.New(toolerr.NotFound, "%s did not exist when the edit began", b.Shown)
	}
	return toolerr.New(toolerr.CodeOf(err), "%w (an empty old_string creates it)", err)
}
