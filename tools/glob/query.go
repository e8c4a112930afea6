package main

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// query is a validated call.
type query struct {
	args     arguments
	fs       *sandbox.FS
	dirs     *walk.Cache // cache of directories
	dir      string      // starting directory, as given
	glob     *glob.Glob  // compiled pattern
	pattern  string      // relative to dir
	exclude  []*glob.Glob
	missing  error  // error if the pattern's literal directories do not exist; otherwise nil
	shownDir string // how results show dir, if the pattern leads there through a link; otherwise ""
	abs      string // absolute path of dir, set once it is open
}

// newQuery compiles the patterns of the arguments, and makes the directory that the
// pattern begins with the one to search. It returns the error of the first invalid
// pattern.
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
	if q.glob, err = compilePattern(q.pattern); err != nil {
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

// compilePattern compiles a pattern. Results show names with control characters
// and the like with escapes (\n, \xff). A pattern copied from a result also
// matches the escaped name.
func compilePattern(pattern string) (*glob.Glob, error) {
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
	text := glob.ToSlash(pattern)
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

// explainOpenError adds the likely cause to an error from opening the starting
// directory. It returns BAD_PATTERN instead if the pattern is the path of a root.
func (q *query) explainOpenError(err error) error {
	if q.pattern != q.args.Pattern && toolerr.Is(err, toolerr.OutsideRoot) {
		if _, failed := q.fs.WithNearbySuggestions().Stat(q.args.Pattern); failed == nil { // a root, whose parent is outside the roots
			return toolerr.New(toolerr.BadPattern, "%s is the directory to search, not a pattern: %q lists the files in it",
				pathname.Escape(q.args.Pattern), strings.TrimRight(q.args.Pattern, "/")+"/**")
		}
		return toolerr.New(toolerr.OutsideRoot, `%w (a pattern relative to path does not begin with "/")`, err)
	}
	return err
}

// followPrefix opens the literal directories at the beginning of the pattern.
// If they lead through a symbolic link, the search starts there: a walk follows
// no link, but a link that the caller names is followed. If they do not exist,
// followPrefix sets q.missing and returns nil. It returns the other errors of opening
// them, and those of explainOpenError.
func (q *query) followPrefix() error {
	prefix := q.glob.Prefix()
	if prefix == "" {
		return nil
	}
	start, err := q.fs.OpenDir(q.dir)
	if err != nil {
		return q.explainOpenError(err)
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
		q.shownDir = path.Join(q.fs.Display(start.Path()), pathname.Escape(prefix))
		q.dir, q.glob = below, q.glob.RelativeToPrefix()
	}
	return nil
}

// isExcluded reports whether exclude matches a path. An excluded directory is excluded
// with everything below. isDir says that it is a directory.
func (q *query) isExcluded(path string, isDir bool) bool {
	for _, g := range q.exclude {
		if g.MatchEntry(path, isDir) {
			return true
		}
	}
	return false
}
