package main

import (
	"context"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// query is a validated call.
type query struct {
	*grepper
	args         arguments
	fs           *sandbox.FS
	dir          string          // start of the search: a file or directory, as given
	matcher      *search.Matcher // the compiled pattern
	filter       fileFilter
	before       int // lines of context
	after        int
	contextGiven bool   // the caller set the context
	perFile      int    // matches to show of one file
	abs          string // absolute path of dir, set once it is open
	anySize      bool   // search a file of any size, not only up to MaxFileSize
}

// newQuery compiles the pattern and globs of the arguments. It returns BAD_PATTERN for an
// invalid pattern, the errors of newFileFilter, and ctx's error.
func (g *grepper) newQuery(ctx context.Context, fsys *sandbox.FS, args arguments) (*query, error) {
	q := &query{grepper: g, args: args, fs: fsys, dir: args.Path, perFile: min(args.MaxPerFile, maxHeadLimit)}
	if q.dir == "" {
		q.dir = "."
	}
	q.setContextLines()
	var err error
	if q.matcher, err = search.CompileContext(ctx, args.Pattern, search.Options{
		IgnoreCase: args.IgnoreCase, Literal: args.Literal, Multiline: args.Multiline,
	}); err != nil {
		return nil, err
	}
	if q.filter, err = newFileFilter(args); err != nil {
		return nil, err
	}
	return q, nil
}

// setContextLines sets the lines of context from -A, -B and -C. -A and -B take
// precedence.
func (q *query) setContextLines() {
	for _, given := range []struct {
		lines *int
		sides []*int
	}{{q.args.Context, []*int{&q.before, &q.after}}, {q.args.Before, []*int{&q.before}}, {q.args.After, []*int{&q.after}}} {
		if given.lines == nil {
			continue
		}
		q.contextGiven = true
		for _, side := range given.sides {
			*side = min(*given.lines, maxContext)
		}
	}
}
