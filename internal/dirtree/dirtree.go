// Package dirtree lists a directory as a tree, for the tools ls and view.
//
// Tree walks breadth-first. Within a directory, subdirectories come first, in
// natural order. Directories take turns: the top directory lists up to 200
// entries, then every directory found so far lists ten, and so on. This order
// depends only on the tree. A page is a range of it, so the pages together form
// the whole listing without repetition. Within a page, each entry is shown
// below its directory.
//
//	result, err := dirtree.Tree(ctx, fs, "src", dirtree.Options{})
//	text := dirtree.Render(result)
package dirtree

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Defaults of Options, and limits of the time spent.
const (
	DefaultDepth = 2
	MaxDepth     = 20
	DefaultLimit = 400

	defaultBudget  = 48_000                 // bytes of text
	defaultGitWait = 200 * time.Millisecond // for git's answer
	maxDetailTime  = 400 * time.Millisecond // for line counts and counts of ignored files
	maxListTime    = 600 * time.Millisecond // until the rest of the tree is counted
)

// Options configures a listing. The zero value gives the defaults of ls.
type Options struct {
	Depth      int      // levels, 1 to MaxDepth; 0: DefaultDepth
	Ignore     []string // globs (package glob) of entries to omit
	SkipHidden bool     // leave out names that begin with a dot
	NoIgnore   bool     // read no ignore files
	Long       bool     // add mode and modification time
	Limit      int      // rows a page; 0: DefaultLimit
	Offset     int      // rows to skip
	Budget     int      // bytes of text; 0: 48 000
	Note       string   // a note to add to the header line; "": none

	// GitWait is the time that git has to report changes; 0: 200 ms, negative:
	// git is not run.
	GitWait time.Duration
}

// withDefaults returns the options with defaults for zero values, and with
// Depth limited to MaxDepth.
func (o Options) withDefaults() Options {
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	o.Depth = min(o.Depth, MaxDepth)
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	o.Offset = max(o.Offset, 0)
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	if o.GitWait == 0 {
		o.GitWait = defaultGitWait
	}
	return o
}

// Tree lists the directory at path, or the single file; "" means the current
// directory. It returns the errors of the sandbox, BAD_PATTERN if a glob of
// Options.Ignore is invalid, and the error of ctx.
func Tree(ctx context.Context, box *sandbox.FS, path string, opts Options) (*Result, error) {
	opts = opts.withDefaults()
	var globs []*glob.Glob
	for _, pattern := range opts.Ignore {
		g, err := glob.Compile(pattern)
		if err == nil {
			err = g.Fault()
		}
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	if path == "" {
		path = "."
	}
	st, err := box.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode.IsDir() {
		return listFile(ctx, box, path, opts)
	}
	return listDir(ctx, box, path, opts, globs)
}
