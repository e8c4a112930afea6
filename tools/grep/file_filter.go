package main

import (
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// fileFilter selects the files below the start to search.
type fileFilter struct {
	include []*glob.Glob // a file must match one of these, if there are any
	exclude []*glob.Glob
	types   []*glob.Glob // a file's name must match one of these, if there are any
}

// shouldEnter reports whether a directory may contain files to search.
func (f *fileFilter) shouldEnter(dir string) bool {
	if f.isExcluded(dir, true) {
		return false
	}
	for _, g := range f.include {
		if g.MayMatchBelow(dir) {
			return true
		}
	}
	return len(f.include) == 0
}

// isExcluded reports whether exclude matches a path. An excluded directory is excluded
// with everything below. isDir says that it is a directory.
func (f *fileFilter) isExcluded(path string, isDir bool) bool {
	for _, g := range f.exclude {
		if g.MatchEntry(path, isDir) {
			return true
		}
	}
	return false
}

// wants reports whether to search the file at path, relative to the start, with
// the base name name. Unless used is nil, it sets used[i] for each f.include[i]
// that matches, even if type or exclude rule the file out.
func (f *fileFilter) wants(path, name string, used []bool) bool {
	included := len(f.include) == 0
	for i, g := range f.include {
		if (!included || used != nil && !used[i]) && g.MatchEntry(path, false) {
			included = true
			if used != nil {
				used[i] = true
			}
		}
	}
	return included && f.hasType(name) && !f.isExcluded(path, false)
}

// hasType reports whether a file name belongs to the type, if one is given.
func (f *fileFilter) hasType(name string) bool {
	for _, g := range f.types {
		if g.Match(name) {
			return true
		}
	}
	return len(f.types) == 0
}

// newFileFilter compiles the globs of glob, exclude and type. A glob that
// begins with ! excludes. It returns the error of the first invalid glob, and
// INVALID_PARAMS for an unknown type.
func newFileFilter(args arguments) (fileFilter, error) {
	var f fileFilter
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
