package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// query is a validated call.
type query struct {
	*grepper
	args    arguments
	fs      *sandbox.FS
	dir     string // start of the search, as given
	matcher *search.Matcher
	filter  filter
	before  int // lines of context
	after   int
	asked   bool   // the caller set the context
	perFile int    // entries to show of one file
	abs     string // dir, once it is open
	anySize bool   // search a file of any size
}

// filter selects the files below the start to search.
type filter struct {
	include []*glob.Glob // a file must match one of these, if there are any
	exclude []*glob.Glob
	types   []*glob.Glob // a file's name must match one of these, if there are any
}

func (g *grepper) newQuery(ctx context.Context, fsys *sandbox.FS, args arguments) (*query, error) {
	q := &query{grepper: g, args: args, fs: fsys, dir: args.Path, perFile: min(args.MaxPerFile, maxHeadLimit)}
	if q.dir == "" {
		q.dir = "."
	}
	q.context()
	var err error
	if q.matcher, err = search.CompileContext(ctx, args.Pattern, search.Options{
		IgnoreCase: args.IgnoreCase, Literal: args.Literal, Multiline: args.Multiline,
	}); err != nil {
		return nil, err
	}
	if q.filter, err = newFilter(args); err != nil {
		return nil, err
	}
	return q, nil
}

// maxContext bounds the lines of context on each side.
const maxContext = 10_000

// context sets the lines of context from -A, -B and -C; -A and -B take
// precedence.
func (q *query) context() {
	for _, given := range []struct {
		lines *int
		sides []*int
	}{{q.args.Context, []*int{&q.before, &q.after}}, {q.args.Before, []*int{&q.before}}, {q.args.After, []*int{&q.after}}} {
		if given.lines == nil {
			continue
		}
		q.asked = true
		for _, side := range given.sides {
			*side = min(*given.lines, maxContext)
		}
	}
}

func newFilter(args arguments) (filter, error) {
	var f filter
	var err error
	include := []string{}
	exclude := append([]string{}, args.Exclude...)
	for _, text := range args.Glob {
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			exclude = append(exclude, rest)
		} else {
			include = append(include, text)
		}
	}
	if f.include, err = compileGlobs(include); err != nil {
		return f, err
	}
	if f.exclude, err = compileGlobs(exclude); err != nil {
		return f, err
	}
	if args.Type != "" {
		f.types, err = typeGlobs(args.Type)
	}
	return f, err
}

// compileGlobs compiles globs. A glob copied from an escaped name in a result
// also matches that name.
func compileGlobs(patterns []string) ([]*glob.Glob, error) {
	var globs []*glob.Glob
	for _, pattern := range patterns {
		g, err := glob.Compile(pattern)
		if err == nil {
			err = g.Fault()
		}
		if err != nil {
			return nil, err
		}
		if name, ok := pathname.Unescape(pattern); ok && name != pattern && filepath.Separator == '/' {
			if shown, err := glob.Compile(strings.ReplaceAll(name, `\`, `\\`)); err == nil {
				g = g.Or(shown)
			}
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// enter reports whether a directory may contain files to search.
func (f *filter) enter(dir string) bool {
	if f.excluded(dir, true) {
		return false
	}
	for _, g := range f.include {
		if g.Enter(dir) {
			return true
		}
	}
	return len(f.include) == 0
}

// excluded reports whether a path is excluded; for a directory, with everything
// below.
func (f *filter) excluded(path string, isDir bool) bool {
	for _, g := range f.exclude {
		if g.MatchEntry(path, isDir) {
			return true
		}
	}
	return false
}

// wants reports whether to search a file. It marks in used which globs matched
// a file; used may be nil.
func (f *filter) wants(path, name string, used []bool) bool {
	included := len(f.include) == 0
	for i, g := range f.include {
		if (!included || used != nil && !used[i]) && g.MatchEntry(path, false) {
			included = true
			if used != nil {
				used[i] = true
			}
		}
	}
	return included && f.ofType(name) && !f.excluded(path, false)
}

func (f *filter) ofType(name string) bool {
	for _, g := range f.types {
		if g.Match(name) {
			return true
		}
	}
	return len(f.types) == 0
}
