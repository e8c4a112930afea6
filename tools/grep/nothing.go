package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"time"
	"unicode"

	"github.com/toolroom-mcp/toolroom/pkg/topk"
	"github.com/toolroom-mcp/toolroom/pkg/walk"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// The bounds of the looks behind a search.
const (
	ignoredTime = 10 * time.Millisecond // at the least, for what is ignored
	nothingTime = 30 * time.Millisecond // at the least, where nothing matched
	mostTime    = 250 * time.Millisecond
)

// near is what a look found.
type near struct {
	files int
	more  bool // there may be more
	paths []string
}

// second is what short looks found beside the matches.
type second struct {
	ignored near // files that match and are ignored
	cased   near // files that match but for case
	literal near // files that hold the pattern as plain text
}

// lookAgain looks for what the search was not asked for: matches in ignored
// files, as far as a fraction of its time takes, and where nothing matched at
// all, what comes close.
func (q *query) lookAgain(ctx context.Context, f *found) second {
	var s second
	if f.partial || f.isFile && f.files > 0 {
		return s
	}
	limit := min(max(nothingTime, f.elapsed/4), mostTime)
	if f.files > 0 {
		limit = min(max(ignoredTime, f.elapsed/5), mostTime)
	}
	if len(f.ignored)+len(f.report.IgnoredDirs) > 0 {
		s.ignored = q.lookAt(ctx, limit, q.matcher, func(look *query, w []searcher) bool { return look.ignored(w, f) })
	}
	if f.files > 0 {
		return s
	}
	everything := func(look *query, w []searcher) bool { return look.everything(w, f) }
	if !q.args.IgnoreCase && strings.ContainsFunc(q.args.Pattern, cased) {
		if m, err := search.CompileContext(ctx, q.args.Pattern, search.Options{IgnoreCase: true, Literal: q.args.Literal, Multiline: q.args.Multiline}); err == nil {
			s.cased = q.lookAt(ctx, limit, m, everything)
		}
	}
	if !q.args.Literal && !plainText(q.args.Pattern) {
		if m, err := search.CompileContext(ctx, q.args.Pattern, search.Options{Literal: true, IgnoreCase: q.args.IgnoreCase}); err == nil {
			s.literal = q.lookAt(ctx, limit, m, everything)
		}
	}
	return s
}

func cased(r rune) bool { return unicode.SimpleFold(r) != r }

// plainText reports whether a pattern stands for itself, so that it matches
// the same as plain text.
func plainText(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && re.Op == syntax.OpLiteral && string(re.Rune) == pattern || pattern == ""
}

// lookAt searches for a short time. search reports whether it saw everything.
func (q *query) lookAt(ctx context.Context, limit time.Duration, m *search.Matcher, search func(look *query, w []searcher) bool) near {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	look := *q
	look.matcher = m
	look.args.OutputMode, look.args.Sort, look.args.Offset, look.args.HeadLimit = modeFiles, "path", 0, maxNamed
	w := look.searchers(ctx, q.workers())
	n := near{more: !search(&look, w) || ctx.Err() != nil}
	tops := make([]topk.Top[match], len(w))
	for i := range w {
		w[i].giveBack()
		n.files += w[i].tally.files
		tops[i] = w[i].top
	}
	for _, m := range topk.Merge(tops, 0) {
		n.paths = append(n.paths, q.shownPath(q.abs, m.path))
	}
	return n
}

// everything searches all that was searched before, with another matcher.
func (q *query) everything(w []searcher, f *found) bool {
	if f.isFile {
		w[0].named(q.dir, "")
		return true
	}
	node, err := walk.Start(q.fs, q.abs, walk.Options{
		Hidden: q.args.Hidden, NoIgnore: q.args.NoIgnore, Workers: len(w), Cache: q.warm.cache(),
	})
	if err != nil {
		return false
	}
	defer node.Close()
	_, err = walk.Walk(w[0].ctx, node, func(worker int, e *walk.Entry) error { return w[worker].visit(e) })
	return err == nil
}

// ignored searches what is ignored.
func (q *query) ignored(w []searcher, f *found) bool {
	ctx := w[0].ctx
	for _, path := range f.ignored {
		if ctx.Err() != nil {
			return false
		}
		w[0].named(filepath.Join(f.abs, filepath.FromSlash(path)), path)
	}
	for _, dir := range f.report.IgnoredDirs {
		if ctx.Err() != nil {
			return false
		}
		if q.prune(dir) {
			continue
		}
		node, err := walk.Start(q.fs, filepath.Join(f.abs, filepath.FromSlash(dir)), walk.Options{
			Hidden: q.args.Hidden, NoIgnore: true, Workers: len(w), Cache: q.warm.cache(),
		})
		if err != nil {
			continue
		}
		_, err = walk.Walk(ctx, node, func(worker int, e *walk.Entry) error {
			below := *e
			below.Path = dir + "/" + e.Path
			return w[worker].visit(&below)
		})
		node.Close()
		if err != nil {
			return false
		}
	}
	return len(f.ignored) < maxIgnored && len(f.report.IgnoredDirs) < maxIgnored
}

// remark is the header's word on ignored matches.
func (n near) remark() string {
	more := ""
	if n.more {
		more = "+"
	}
	return fmt.Sprintf("%d%s more matching %s ignored, no_ignore=true", n.files, more, verb(n.files, "file is", "files are"))
}

// write says what comes close where nothing matched.
func (s second) write(b *strings.Builder) {
	for _, n := range []struct {
		near
		how string
	}{{s.ignored, "if ignored files are searched (no_ignore=true)"}, {s.cased, "whatever the case (-i=true)"}, {s.literal, "as plain text (literal=true)"}} {
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
