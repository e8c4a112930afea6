package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// Limits of the near search, which follows a search without matches.
const (
	nearTime    = 500 * time.Millisecond
	maxExamples = 3 // paths named for each kind of near match
)

// noMatchResult returns the result if no path matches: what was searched, and
// near matches.
func (q *query) noMatchResult(ctx context.Context, f *searchResult) (*mcpkit.Result, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "0 %s match %s in %s (searched %s", q.noun(0), pathname.Escape(q.args.Pattern), f.shownDir, textfmt.Count(f.report.Files+f.report.Dirs, "path"))
	for _, note := range q.omissionNotes(f) {
		b.WriteString("; " + note)
	}
	b.WriteString(")\n")
	if q.missing != nil {
		fmt.Fprintf(&b, "In the pattern, %s\n", q.missing)
	}
	if dir, ok := q.namedDirectory(); ok {
		fmt.Fprintf(&b, "%s is a directory: %q lists the files in it, type=d finds it.\n", dir, strings.TrimSuffix(q.args.Pattern, "/")+"/**")
	}
	near, err := q.searchNear(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range near {
		n.write(&b, q, f)
	}
	if slices.Contains(strings.Split(q.pattern, "/"), ".git") {
		b.WriteString(".git is only searched when path names it or a directory in it.\n")
	}
	if strings.Contains(q.pattern, `\`) && filepath.Separator == '/' {
		b.WriteString("A backslash escapes the next character: write / between directories.\n")
	}
	return &mcpkit.Result{
		Text: b.String(), Rows: []row{},
		Meta: meta{Ignored: f.ignored, Unreadable: f.report.Unreadable},
	}, nil
}

// namedDirectory returns the directory that the pattern names literally, as
// shown. It returns false if the pattern names none, or if directories are
// searched anyway.
func (q *query) namedDirectory() (path string, ok bool) {
	if q.args.Type != "f" || glob.HasMeta(q.pattern) || q.shownDir != "" {
		return "", false
	}
	dir, err := q.fs.WithNearbySuggestions().OpenDir(filepath.Join(q.dir, filepath.FromSlash(q.pattern)))
	if err != nil {
		return "", false
	}
	defer dir.Close()
	return q.fs.Display(dir.Path()), true
}

// nearMatches is a kind of paths that nearly match.
type nearMatches struct {
	before, after string // words before and after "matches"
	count         int
	paths         []string // the first few
}

// add counts a path, and keeps it if it is one of the first maxExamples.
func (n *nearMatches) add(path string) {
	n.count++
	if len(n.paths) < maxExamples {
		n.paths = append(n.paths, path)
	}
}

// write writes a line with the number and the first few paths; nothing if there
// are none.
func (n *nearMatches) write(b *strings.Builder, q *query, f *searchResult) {
	if n.count == 0 {
		return
	}
	names := make([]string, len(n.paths))
	for i, p := range n.paths {
		names[i] = q.shownPath(f, p)
	}
	more := ""
	if n.count > len(names) {
		more = ", …"
	}
	noun := "matches"
	if n.count == 1 {
		noun = "match"
	}
	fmt.Fprintf(b, "%d %s%s%s: %s%s\n", n.count, n.before, noun, n.after, strings.Join(names, ", "), more)
}

// searchNear searches once more, for at most nearTime, for paths that match except
// that they are ignored, hidden, excluded, of another type, or differ in case. It
// returns these kinds in this order, also those without a path. When the time is
// over, it returns what it has found; it returns an error if ctx is cancelled or
// the directory cannot be read.
func (q *query) searchNear(ctx context.Context) ([]*nearMatches, error) {
	folded, err := glob.CompileFold(q.pattern)
	if err != nil {
		return nil, err
	}
	if q.shownDir != "" {
		folded = folded.RelativeToPrefix()
	}
	ignored := &nearMatches{before: "ignored ", after: " (no_ignore=true to include)"}
	hidden := &nearMatches{before: "hidden ", after: " (hidden=true to include)"}
	excluded := &nearMatches{after: " excluded by exclude"}
	other := &nearMatches{after: " of another type (type=any to include)"}
	cased := &nearMatches{after: " with different case"}
	kinds := []*nearMatches{ignored, hidden, excluded, other, cased}

	short, stop := context.WithTimeout(ctx, nearTime)
	defer stop()
	node, err := walk.Start(q.fs, q.dir, walk.Options{
		Hidden: true, NoIgnore: true, Workers: 1,
		Prune: func(dir string) bool {
			return !folded.MayMatchBelow(dir) || q.fs.Denied(filepath.Join(q.abs, filepath.FromSlash(dir)))
		},
	})
	if err != nil {
		return nil, err
	}
	defer node.Close()
	_, err = walk.Walk(short, node, func(_ int, e *walk.Entry) error {
		switch {
		case !folded.MatchEntry(e.Path, q.mayBeDir(e)):
		case !q.glob.MatchEntry(e.Path, q.mayBeDir(e)):
			if !e.IsDir() || q.args.Type != "f" {
				cased.add(e.Path)
			}
		case !q.hasWantedType(e):
			other.add(e.Path)
		case q.isExcludedWithParents(e.Path):
			excluded.add(e.Path)
		case !q.args.Hidden && isHidden(e.Path):
			hidden.add(e.Path)
		case !q.args.NoIgnore:
			ignored.add(e.Path)
		}
		return nil
	})
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return kinds, nil
}

// isExcludedWithParents reports whether the argument exclude matches a path,
// taken as a file, or one of the directories above it.
func (q *query) isExcludedWithParents(path string) bool {
	for i := range len(path) {
		if path[i] == '/' && q.isExcluded(path[:i], true) {
			return true
		}
	}
	return q.isExcluded(path, false)
}

// isHidden reports whether the path or one of its parent directories begins
// with a dot.
func isHidden(path string) bool { return path[0] == '.' || strings.Contains(path, "/.") }
