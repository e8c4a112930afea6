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

// Limits of the additional search after a search without matches.
const (
	againTime  = 500 * time.Millisecond
	maxExample = 3
)

// nothing returns the answer if no path matches: what was searched, and similar
// paths.
func (q *query) nothing(ctx context.Context, f *found) (*mcpkit.Result, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "0 %s match %s in %s (searched %s", q.noun(0), pathname.Escape(q.args.Pattern), f.shown, textfmt.Count(f.report.Files+f.report.Dirs, "path"))
	for _, note := range q.remarks(f) {
		b.WriteString("; " + note)
	}
	b.WriteString(")\n")
	if q.missing != nil {
		fmt.Fprintf(&b, "In the pattern, %s\n", q.missing)
	}
	if dir, ok := q.plainDirectory(); ok {
		fmt.Fprintf(&b, "%s is a directory: %q lists the files in it, type=d finds it.\n", dir, strings.TrimSuffix(q.args.Pattern, "/")+"/**")
	}
	near, err := q.lookAgain(ctx)
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

// plainDirectory returns the directory that the pattern names literally. The
// result is false if it names none, or if directories are searched anyway.
func (q *query) plainDirectory() (string, bool) {
	if q.args.Type != "f" || glob.HasMeta(q.pattern) || q.inDir != "" {
		return "", false
	}
	dir, err := q.fs.Quiet().OpenDir(filepath.Join(q.dir, filepath.FromSlash(q.pattern)))
	if err != nil {
		return "", false
	}
	defer dir.Close()
	return q.fs.Display(dir.Path()), true
}

// near is a group of similar paths, with the first few of them.
type near struct {
	before, after string // words before and after "matches"
	count         int
	paths         []string
}

func (n *near) add(path string) {
	n.count++
	if len(n.paths) < maxExample {
		n.paths = append(n.paths, path)
	}
}

func (n *near) write(b *strings.Builder, q *query, f *found) {
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

// lookAgain searches once more, for a short time, for paths that are ignored,
// hidden, excluded, of another type, or that differ only in case.
func (q *query) lookAgain(ctx context.Context) ([]*near, error) {
	folded, err := glob.CompileFold(q.pattern)
	if err != nil {
		return nil, err
	}
	if q.inDir != "" {
		folded = folded.Below()
	}
	ignored := &near{before: "ignored ", after: " (no_ignore=true to include)"}
	hidden := &near{before: "hidden ", after: " (hidden=true to include)"}
	excluded := &near{after: " excluded by exclude"}
	other := &near{after: " of another type (type=any to include)"}
	cased := &near{after: " with different case"}
	kinds := []*near{ignored, hidden, excluded, other, cased}

	short, stop := context.WithTimeout(ctx, againTime)
	defer stop()
	node, err := walk.Start(q.fs, q.dir, walk.Options{
		Hidden: true, NoIgnore: true, Workers: 1,
		Prune: func(dir string) bool {
			return !folded.Enter(dir) || q.fs.Denied(filepath.Join(q.abs, filepath.FromSlash(dir)))
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
		case !q.fits(e):
			other.add(e.Path)
		case q.excludedAbove(e.Path):
			excluded.add(e.Path)
		case !q.args.Hidden && hiddenAbove(e.Path):
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

// excludedAbove reports whether the path or one of its parent directories is
// excluded.
func (q *query) excludedAbove(path string) bool {
	for i := range len(path) {
		if path[i] == '/' && q.excluded(path[:i], true) {
			return true
		}
	}
	return q.excluded(path, false)
}

func hiddenAbove(path string) bool { return path[0] == '.' || strings.Contains(path, "/.") }
