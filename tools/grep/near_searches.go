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

// workLimit bounds a near search by the amount of work instead of time, so that
// it finds the same on a slow machine as on a fast one. A single worker visits
// the entries in a fixed order.
type workLimit struct {
	entries  int   // that may still be visited
	files    int   // that may still be searched
	bytes    int64 // of these files
	exceeded bool  // something was omitted
}

// Limits of near searches.
var (
	ignoredLimit = workLimit{entries: 10_000, files: 1000, bytes: 16 << 20}
	noMatchLimit = workLimit{entries: 40_000, files: 4000, bytes: 48 << 20} // if nothing matched
)

// maxNearFile bounds the files below a directory that a near search reads, in
// bytes: a larger file would use up the limit of many.
const maxNearFile = 4 << 20

// takeEntry takes an entry from the limit, and reports whether it may be
// visited. A nil limit is unlimited.
func (a *workLimit) takeEntry() bool {
	if a == nil {
		return true
	}
	if a.entries--; a.entries < 0 {
		a.exceeded = true
	}
	return !a.exceeded
}

// takeFile takes a file of the given size from the limit, and reports whether
// it may be searched. Files over largest bytes may not. A nil limit is
// unlimited.
func (a *workLimit) takeFile(size, largest int64) bool {
	switch {
	case a == nil:
		return true
	case size > largest, size > a.bytes, a.files == 0:
		a.exceeded = true
		return false
	}
	a.files--
	a.bytes -= size
	return true
}

// nearMatches holds the findings of one near search.
type nearMatches struct {
	files int      // number of files
	more  bool     // there may be more
	paths []string // of the first few files, as shown
}

// nearSearches has the results of the searches beyond the request.
type nearSearches struct {
	ignored   nearMatches // files that match but are ignored
	otherCase nearMatches // files that match if case is ignored
	asText    nearMatches // files that contain the pattern as plain text
}

// searchNear searches beyond the request: for matches in ignored files and, if
// nothing matched, for near matches. A limit on the work ends it, never a time.
func (q *query) searchNear(ctx context.Context, f *searchResult) nearSearches {
	var s nearSearches
	if f.partial || f.isFile && f.matchingFiles > 0 {
		return s
	}
	allowed := noMatchLimit
	if f.matchingFiles > 0 {
		allowed = ignoredLimit
	}
	if len(f.ignored)+len(f.report.IgnoredDirs) > 0 {
		s.ignored = q.searchWithin(ctx, allowed, q.matcher, func(look *query, w *searcher) bool { return look.searchIgnored(w, f) })
	}
	if f.matchingFiles > 0 {
		return s
	}
	everything := func(look *query, w *searcher) bool { return look.searchSameFiles(w, f) }
	if !q.args.IgnoreCase && strings.ContainsFunc(q.args.Pattern, hasOtherCase) {
		if m, err := search.CompileContext(ctx, q.args.Pattern, search.Options{IgnoreCase: true, Literal: q.args.Literal, Multiline: q.args.Multiline}); err == nil {
			s.otherCase = q.searchWithin(ctx, allowed, m, everything)
		}
	}
	if !q.args.Literal && !isPlainText(q.args.Pattern) {
		if m, err := search.CompileContext(ctx, q.args.Pattern, search.Options{Literal: true, IgnoreCase: q.args.IgnoreCase}); err == nil {
			s.asText = q.searchWithin(ctx, allowed, m, everything)
		}
	}
	return s
}

// hasOtherCase reports whether r has another case.
func hasOtherCase(r rune) bool { return unicode.SimpleFold(r) != r }

// isPlainText reports whether a pattern has no special characters, so that it
// matches the same as plain text.
func isPlainText(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && re.Op == syntax.OpLiteral && string(re.Rune) == pattern || pattern == ""
}

// searchWithin runs a near search within a limit. search reports whether it
// covered everything.
func (q *query) searchWithin(ctx context.Context, allowed workLimit, m *search.Matcher, search func(look *query, w *searcher) bool) nearMatches {
	look := *q
	look.matcher = m
	look.args.OutputMode, look.args.Sort, look.args.Offset, look.args.HeadLimit = modeFiles, "path", 0, maxNamedPaths
	w := &look.newSearchers(ctx, 1)[0]
	w.limit = &allowed
	n := nearMatches{more: !search(&look, w) || allowed.exceeded || ctx.Err() != nil}
	w.releaseMemory()
	n.files = w.tally.matchingFiles
	for _, m := range topk.Merge([]topk.Top[matchingFile]{w.top}, 0) {
		n.paths = append(n.paths, q.shownPath(q.abs, m.path))
	}
	return n
}

// searchSameFiles searches the files of the search f once more, with the matcher and
// limits of w, which gets the results. complete is false if the search stopped early or
// could not begin; a single file always counts as searched.
func (q *query) searchSameFiles(w *searcher, f *searchResult) (complete bool) {
	if f.isFile {
		w.openAndSearch(q.dir, "")
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

// searchIgnored searches the files and directories that the search f ignored; w gets the
// results. complete is false if it stopped at the limit or because w.ctx ended.
func (q *query) searchIgnored(w *searcher, f *searchResult) (complete bool) {
	for _, path := range f.ignored {
		if w.ctx.Err() != nil || !w.limit.takeEntry() {
			return false
		}
		w.openAndSearch(filepath.Join(f.abs, filepath.FromSlash(path)), path)
	}
	for _, dir := range f.report.IgnoredDirs {
		if w.ctx.Err() != nil || w.limit.entries < 0 {
			return false
		}
		if q.skipsIgnoredDir(dir) {
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

// headerNote returns the header's note on ignored matches.
func (n nearMatches) headerNote() string {
	more := ""
	if n.more {
		more = "+"
	}
	return fmt.Sprintf("%d%s more matching %s ignored, no_ignore=true", n.files, more, oneOrMany(n.files, "file is", "files are"))
}

// writeNotes writes the near matches of a search without matches, one line for
// each search that found any.
func (s nearSearches) writeNotes(b *strings.Builder) {
	for _, n := range []struct {
		nearMatches
		how string
	}{{s.ignored, "in ignored files (no_ignore=true)"}, {s.otherCase, "case-insensitively (-i=true)"}, {s.asText, "as plain text (literal=true)"}} {
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
		fmt.Fprintf(b, "%d%s %s %s: %s%s\n", n.files, more, oneOrMany(n.files, "file matches", "files match"), n.how, strings.Join(n.paths, ", "), etc)
	}
}
