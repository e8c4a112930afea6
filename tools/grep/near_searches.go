package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/topk"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// workLimit bounds a search for hints by the amount of work instead of time, so
// that it finds the same on a slow machine as on a fast one. A single worker
// visits the entries in a fixed order.
type workLimit struct {
	entries int   // to visit
	files   int   // to search
	bytes   int64 // of those files
	spent   bool  // something was omitted
}

// Limits of the searches for hints.
var (
	ignoredLimit = workLimit{entries: 10_000, files: 1000, bytes: 16 << 20}
	noMatchLimit = workLimit{entries: 40_000, files: 4000, bytes: 48 << 20} // if nothing matched
)

// maxHintFile bounds the files below a directory that a search for hints reads,
// in bytes: a larger file would use up the limit of many.
const maxHintFile = 4 << 20

// entry reports whether another entry may be visited. A nil allowance is
// unlimited.
func (a *workLimit) entry() bool {
	if a == nil {
		return true
	}
	if a.entries--; a.entries < 0 {
		a.spent = true
	}
	return !a.spent
}

// file reports whether a file of the given size may be searched.
func (a *workLimit) file(size, largest int64) bool {
	switch {
	case a == nil:
		return true
	case size > largest, size > a.bytes, a.files == 0:
		a.spent = true
		return false
	}
	a.files--
	a.bytes -= size
	return true
}

// hint is the result of one search for hints.
type hint struct {
	files int
	more  bool // there may be more
	paths []string
}

// hints holds the results of all searches for hints.
type hints struct {
	ignored hint // files that match but are ignored
	cased   hint // files that match if case is ignored
	literal hint // files that contain the pattern as plain text
}

// findHints searches beyond the request: for matches in ignored files and, if
// nothing matched, for near matches. A limit on the work ends it, never a time.
func (q *query) findHints(ctx context.Context, f *found) hints {
	var s hints
	if f.partial || f.isFile && f.files > 0 {
		return s
	}
	allowed := noMatchLimit
	if f.files > 0 {
		allowed = ignoredLimit
	}
	if len(f.ignored)+len(f.report.IgnoredDirs) > 0 {
		s.ignored = q.runLimited(ctx, allowed, q.matcher, func(look *query, w *searcher) bool { return look.searchIgnored(w, f) })
	}
	if f.files > 0 {
		return s
	}
	everything := func(look *query, w *searcher) bool { return look.searchAll(w, f) }
	if !q.args.IgnoreCase && strings.ContainsFunc(q.args.Pattern, cased) {
		if m, err := search.CompileContext(ctx, q.args.Pattern, search.Options{IgnoreCase: true, Literal: q.args.Literal, Multiline: q.args.Multiline}); err == nil {
			s.cased = q.runLimited(ctx, allowed, m, everything)
		}
	}
	if !q.args.Literal && !plainText(q.args.Pattern) {
		if m, err := search.CompileContext(ctx, q.args.Pattern, search.Options{Literal: true, IgnoreCase: q.args.IgnoreCase}); err == nil {
			s.literal = q.runLimited(ctx, allowed, m, everything)
		}
	}
	return s
}

func cased(r rune) bool { return unicode.SimpleFold(r) != r }

// plainText reports whether a pattern has no special characters, so that it
// matches the same as plain text.
func plainText(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && re.Op == syntax.OpLiteral && string(re.Rune) == pattern || pattern == ""
}

// runLimited runs a search within a limit. search reports whether it covered
// everything.
func (q *query) runLimited(ctx context.Context, allowed workLimit, m *search.Matcher, search func(look *query, w *searcher) bool) hint {
	look := *q
	look.matcher = m
	look.args.OutputMode, look.args.Sort, look.args.Offset, look.args.HeadLimit = modeFiles, "path", 0, maxNamed
	w := &look.searchers(ctx, 1)[0]
	w.limit = &allowed
	n := hint{more: !search(&look, w) || allowed.spent || ctx.Err() != nil}
	w.giveBack()
	n.files = w.tally.files
	for _, m := range topk.Merge([]topk.Top[match]{w.top}, 0) {
		n.paths = append(n.paths, q.shownPath(q.abs, m.path))
	}
	return n
}

// searchAll searches the same files as the first search, with another matcher.
func (q *query) searchAll(w *searcher, f *found) bool {
	if f.isFile {
		w.searchNamed(q.dir, "")
		return true
	}
	node, err := walk.Start(q.fs, q.abs, walk.Options{
		Hidden: q.args.Hidden, NoIgnore: q.args.NoIgnore, Workers: 1, Cache: q.cache.walkCache(),
	})
	if err != nil {
		return false
	}
	defer node.Close()
	_, err = walk.Walk(w.ctx, node, func(_ int, e *walk.Entry) error { return w.visit(e) })
	return err == nil
}

// searchIgnored searches the ignored files and directories.
func (q *query) searchIgnored(w *searcher, f *found) bool {
	for _, path := range f.ignored {
		if w.ctx.Err() != nil || !w.limit.entry() {
			return false
		}
		w.searchNamed(filepath.Join(f.abs, filepath.FromSlash(path)), path)
	}
	for _, dir := range f.report.IgnoredDirs {
		if w.ctx.Err() != nil || w.limit.entries < 0 {
			return false
		}
		if q.prune(dir) {
			continue
		}
		node, err := walk.Start(q.fs, filepath.Join(f.abs, filepath.FromSlash(dir)), walk.Options{
			Hidden: q.args.Hidden, NoIgnore: true, Workers: 1, Cache: q.cache.walkCache(),
		})
		if err != nil {
			continue
		}
		_, err = walk.Walk(w.ctx, node, func(_ int, e *walk.Entry) error {
			below := *e
			below.Path = dir + "/" + e.Path
			return w.visit(&below)
		})
		node.Close()
		if err != nil {
			return false
		}
	}
	return len(f.ignored) < maxIgnored && len(f.report.IgnoredDirs) < maxIgnored
}

// remark returns the header's note on ignored matches.
func (n hint) remark() string {
	more := ""
	if n.more {
		more = "+"
	}
	return fmt.Sprintf("%d%s more matching %s ignored, no_ignore=true", n.files, more, verb(n.files, "file is", "files are"))
}

// write writes the near matches of a search without matches.
func (s hints) write(b *strings.Builder) {
	for _, n := range []struct {
		hint
		how string
	}{{s.ignored, "in ignored files (no_ignore=true)"}, {s.cased, "case-insensitively (-i=true)"}, {s.literal, "as plain text (literal=true)"}} {
		if n.files == 0 {
			continue
		}
		more, etc := "", ""
		if n.more {
			more = "+"
		}
		if n.files > len(n.paths) {
			etc = ", …"
		}
		fmt.Fprintf(b, "%d%s %s %s: %s%s\n", n.files, more, verb(n.files, "file matches", "files match"), n.how, strings.Join(n.paths, ", "), etc)
	}
}
