package main

import (
	"context"
	_ "embed"
	"flag"
	"regexp"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

//go:embed edit.md
var description string

const (
	// maxEdits bounds the edits of a call, and so the passes over a file.
	maxEdits = 100
	// maxConcurrent bounds the memory of concurrent calls.
	maxConcurrent = 4
	// deadline is far longer than the largest file on a slow disk takes.
	deadline = 2 * time.Minute
)

// Config holds the settings of the tool's own flags.
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

type arguments struct {
	FilePath  string          `json:"file_path" alias:"@file"`
	OldString *string         `json:"old_string,omitempty" alias:"@old" verbatim:"true"`
	NewString *string         `json:"new_string,omitempty" alias:"@new" verbatim:"true" jsonschema:"replacement; empty deletes"`
	All       bool            `json:"replace_all,omitempty" alias:"allow_multiple,all_occurrences" default:"false"`
	Expected  int             `json:"expected_replacements,omitempty" min:"1" jsonschema:"replace all matches; fail unless there are this many"`
	Edits     []editArguments `json:"edits,omitempty" alias:"replacements,changes"`
	DryRun    bool            `json:"dry_run,omitempty" default:"false"`
	Etag      string          `json:"etag,omitempty" jsonschema:"from view; fail if those lines changed"`
	Encoding  string          `json:"encoding,omitempty"`
	Strict    bool            `json:"strict,omitempty" default:"false" jsonschema:"ignore only line endings"`
	Undo      bool            `json:"undo,omitempty" default:"false" jsonschema:"revert the last change by edit or replace"`
	foreign
}

// editArguments is an element of edits.
type editArguments struct {
	OldString string `json:"old_string" alias:"@old" verbatim:"true"`
	NewString string `json:"new_string" alias:"@new" verbatim:"true"`
	All       bool   `json:"replace_all,omitempty" alias:"allow_multiple,all_occurrences" default:"false"`
}

// meta is the result's metadata.
type meta struct {
	Replacements int      `json:"replacements" jsonschema:"replacements made"`
	Steps        []string `json:"steps,omitempty" jsonschema:"for each edit, the difference ignored to match it; missing: all matched exactly"`
	Lines        []int    `json:"lines,omitempty" jsonschema:"lines in the old file where the first replacements begin"`
	Etag         string   `json:"etag,omitempty" jsonschema:"hash of the new content"`
	Size         int64    `json:"size" jsonschema:"bytes of the new content"`
	Added        int      `json:"added" jsonschema:"lines"`
	Removed      int      `json:"removed" jsonschema:"lines"`
	Created      bool     `json:"created,omitempty" jsonschema:"there was no file before"`
	Deleted      bool     `json:"deleted,omitempty" jsonschema:"undo removed the file that an edit had created"`
	Undone       bool     `json:"undone,omitempty" jsonschema:"an edit was undone"`
	DryRun       bool     `json:"dry_run,omitempty" jsonschema:"nothing was written"`
	Warnings     int      `json:"warnings,omitempty" jsonschema:"warnings in the text"`
}

// editor holds the state shared by calls.
type editor struct {
	box   *sandbox.Sandbox
	files *fileedit.Rewriter
}

// tools returns the tools to serve.
func tools(box sandbox.Config, kept state.Config, own Config) ([]*mcpkit.Tool, error) {
	if err := box.Validate(); err != nil {
		return nil, err
	}
	if err := kept.Validate(); err != nil {
		return nil, err
	}
	box.ClientRoots, box.Finder = mcpkit.ClientRoots, walk.Named
	if dir := kept.Directory(); dir != "" {
		box.Protect = append(box.Protect, dir)
	}
	e := &editor{
		box:   sandbox.New(box),
		files: &fileedit.Rewriter{Store: state.New(kept), Tool: "edit", KeepHardlinks: own.KeepHardlinks},
	}
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "edit", Title: "Edit file", Description: strings.TrimSpace(description),
		Hints:         mcpkit.Hints{Destructive: true},
		Aliases:       []string{"Edit"},
		RefuseUnknown: true,
		Timeout:       deadline, MaxConcurrent: maxConcurrent, Output: meta{},
	}, e.call)
	return []*mcpkit.Tool{tool}, err
}

// request is a validated call.
type request struct {
	name   string
	edits  []match.Edit // a single one with an empty Old creates the file
	dryRun bool
	etag   string
	strict bool
	undo   bool
	// encoding is the file's encoding given by the caller; "": none.
	encoding textfile.Encoding
}

// creates reports whether the call creates a file.
func (a request) creates() bool { return len(a.edits) == 1 && a.edits[0].Old == "" }

// etagForm matches an etag as shown, or in full.
var etagForm = regexp.MustCompile(`^[0-9a-f]{8,16}$`)

// newRequest validates the combination of arguments.
func newRequest(args arguments) (request, error) {
	a := request{name: args.FilePath, dryRun: args.DryRun, strict: args.Strict, undo: args.Undo}
	a.etag = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(args.Etag), "etag="))
	if args.Encoding != "" {
		e, err := textfile.ParseEncoding(args.Encoding)
		if err != nil {
			return a, toolerr.New(toolerr.BadEncoding, "encoding: %w", err)
		}
		a.encoding = e
	}
	given := func(s *string) bool { return s != nil && (*s != "" || len(args.Edits) == 0 && !args.Undo) }
	single := given(args.OldString) || given(args.NewString)
	switch {
	case a.name == "":
		return a, toolerr.New(toolerr.MissingParameter, "file_path is empty: name the file to edit")
	case a.etag != "" && !etagForm.MatchString(a.etag):
		return a, toolerr.New(toolerr.InvalidParams, "invalid etag %q: give 8 to 16 hex digits, as in the first line of view's output, or leave it out", clip(args.Etag, 40))
	case a.undo && (single || len(args.Edits) > 0):
		return a, toolerr.New(toolerr.InvalidParams, "undo cannot be combined with an edit: leave out undo, or old_string, new_string and edits")
	case a.undo:
		return a, nil
	case len(args.Edits) > 0 && single:
		return a, toolerr.New(toolerr.InvalidParams, "edits cannot be combined with old_string and new_string: put all changes into edits")
	case len(args.Edits) > maxEdits:
		return a, toolerr.New(toolerr.InvalidParams, "edits has %d items: one call takes at most %d", len(args.Edits), maxEdits)
	case len(args.Edits) > 0 && (args.All || args.Expected > 0):
		return a, toolerr.New(toolerr.InvalidParams, "replace_all and expected_replacements apply to old_string: set replace_all in the items of edits")
	case len(args.Edits) > 0:
		for i, e := range args.Edits {
			if e.OldString == "" && len(args.Edits) > 1 {
				return a, toolerr.New(toolerr.InvalidParams, "/edits/%d/old_string is empty: that creates a file and cannot be one of several edits", i)
			}
			a.edits = append(a.edits, match.Edit{Old: e.OldString, New: e.NewString, All: e.All})
		}
		return a, nil
	case args.OldString == nil && args.NewString == nil:
		return a, toolerr.New(toolerr.MissingParameter, "old_string and new_string are missing: give both, or edits, or undo=true")
	case args.OldString == nil:
		return a, toolerr.New(toolerr.MissingParameter, "old_string is missing: give the text to replace (empty creates a file)")
	case args.NewString == nil:
		return a, toolerr.New(toolerr.MissingParameter, "new_string is missing: give the replacement (empty deletes old_string)")
	}
	a.edits = []match.Edit{{Old: *args.OldString, New: *args.NewString, All: args.All, Expected: args.Expected}}
	return a, nil
}

func (e *editor) call(ctx context.Context, args arguments) (*mcpkit.Result, error) {
	if err := args.translate(); err != nil {
		return nil, err
	}
	a, err := newRequest(args)
	if err != nil {
		return nil, err
	}
	fsys, err := e.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	if a.undo {
		return e.undo(ctx, fsys, a)
	}
	return e.edit(ctx, fsys, a)
}

// edit plans, writes and renders a change.
func (e *editor) edit(ctx context.Context, fsys *sandbox.FS, a request) (*mcpkit.Result, error) {
	var c *change
	done, err := e.files.Do(ctx, fsys, a.name, fileedit.Options{DryRun: a.dryRun, Session: mcpkit.ClientSession(ctx)}, func(b *fileedit.Before) (*fileedit.After, error) {
		if !b.Exists && !a.creates() {
			return nil, absent(fsys, a.name, b)
		}
		var err error
		if c, err = a.plan(ctx, b); err != nil {
			return nil, err
		}
		c.after.Encoding, c.after.Guessed, c.after.EncodingNamed = c.encoding(), c.file.Guessed, c.told
		c.after.Executable = !b.Exists && strings.HasPrefix(a.edits[0].New, "#!")
		return c.after, context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	return a.render(ctx, c, done), nil
}

// absent returns the error for a file that does not exist, with similar names.
func absent(fsys *sandbox.FS, name string, b *fileedit.Before) error {
	file, err := fsys.Open(name)
	if err == nil { // it has appeared
		file.Close()
		err = toolerr.New(toolerr.NotFound, "%s did not exist when the edit began", b.Shown)
	}
	return toolerr.New(toolerr.CodeOf(err), "%w (an empty old_string creates it)", err)
}
