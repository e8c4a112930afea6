package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// maxNamedPaths bounds the paths that a note names.
const maxNamedPaths = 3

// header returns the first line: the number of matches, the part that is shown,
// the number of searched files, and notes on skipped files.
func (q *query) header(f *searchResult, near nearSearches, m meta) string {
	var b strings.Builder
	more, files := "", oneOrMany(f.matchingFiles, "file", "files")
	if f.partial {
		more, files = "+", "files"
	}
	switch {
	case f.matchingFiles == 0 && f.partial:
		b.WriteString("no matches so far")
	case f.matchingFiles == 0:
		fmt.Fprintf(&b, "0 matches for %s in %s", quotePattern(q.args.Pattern), q.shownPath(f.abs, ""))
	case q.args.OutputMode == modeFiles:
		fmt.Fprintf(&b, "%d%s %s", f.matchingFiles, more, oneOrMany(f.matchingFiles, "file matches", "files match"))
	default:
		fmt.Fprintf(&b, "%d%s %s in %d%s %s", f.matches, more, oneOrMany(f.matches, "match", "matches"), f.matchingFiles, more, files)
	}
	switch {
	case f.matchingFiles == 0 || m.Shown == f.showable:
	case m.Shown == 0:
		fmt.Fprintf(&b, ", none from offset %d", q.args.Offset)
	default:
		fmt.Fprintf(&b, ", shown %d-%d", q.args.Offset+1, q.args.Offset+m.Shown)
	}
	var notes []string
	if m.NextOffset > 0 {
		notes = append(notes, fmt.Sprintf("offset=%d for more", m.NextOffset))
	}
	notes = append(notes, fmt.Sprintf("searched %d", f.outcomes[searched]))
	if q.args.Path == "" {
		notes = appendNote(notes, q.fs.RootNote())
	}
	notes = append(notes, q.skippedNotes(f)...)
	if near.ignored.files > 0 {
		notes = append(notes, near.ignored.headerNote())
	}
	return b.String() + " (" + strings.Join(notes, "; ") + ")"
}

// appendNote returns notes with note appended, unless note is "".
func appendNote(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}

// oneOrMany returns the text one if n is 1, else the text many.
func oneOrMany(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// quotePattern returns a pattern in quotes, on one line, cut to 100 characters.
func quotePattern(pattern string) string {
	const most = 100
	shown := []rune(pathname.Escape(pattern))
	if len(shown) > most {
		shown = append(shown[:most], '…')
	}
	return `"` + string(shown) + `"`
}

// skippedNotes returns notes on files and directories that were not searched,
// and why.
func (q *query) skippedNotes(f *searchResult) []string {
	var notes []string
	if f.partial {
		notes = append(notes, fmt.Sprintf("stopped after %s: narrow path, glob or type for the rest", f.elapsed.Round(100*time.Millisecond)))
	}
	var skipped []string
	for _, kind := range []struct {
		what outcome
		text string
	}{
		{binary, "binary"}, {tooLarge, q.tooLargeText()},
		{unreadable, "unreadable"}, {secretFile, "secret"}, {special, "special"},
	} {
		if n := f.outcomes[kind.what]; n > 0 {
			skipped = append(skipped, fmt.Sprintf("%d %s", n, kind.text)+q.someNames(f, n, f.skippedPaths[kind.what]))
		}
	}
	if len(skipped) > 0 {
		notes = append(notes, "not searched: "+strings.Join(skipped, ", "))
	}
	notes = appendNote(notes, q.guessedEncodingsNote(f))
	if n := f.report.Unreadable; n > 0 {
		var names []string
		for _, fault := range f.report.UnreadableDirs[:min(len(f.report.UnreadableDirs), maxNamedPaths)] {
			names = append(names, q.shownPath(f.abs, fault.Path))
		}
		if n > len(names) {
			names = append(names, "…")
		}
		notes = append(notes, fmt.Sprintf("%s unreadable: %s", oneOrMany(n, "1 directory", fmt.Sprint(n)+" directories"), strings.Join(names, ", ")))
	}
	if n := f.report.TooDeep; n > 0 {
		notes = append(notes, textfmt.Count(n, "directory")+" too deep to enter")
	}
	if note := walk.UnreadNote(f.report.Faults, func(path string) string { return q.shownPath(f.abs, path) }); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// tooLargeText describes the limit that a too large file exceeds.
func (q *query) tooLargeText() string {
	if q.anySize {
		return "with a line over 1G, or (with multiline, which needs the whole file in memory) over 1G"
	}
	return "larger than " + (*sizeFlag)(&q.MaxFileSize).String()
}

// someNames lists a few of n files in parentheses. It returns "" if paths is
// empty.
func (q *query) someNames(f *searchResult, n int, paths []string) string {
	if len(paths) == 0 || f.isFile {
		return ""
	}
	slices.Sort(paths)
	var names []string
	for _, path := range paths[:min(len(paths), maxNamedPaths)] {
		names = append(names, q.shownPath(f.abs, path))
	}
	if n > len(names) {
		names = append(names, "…")
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// trailingNotes returns the notes after the matches: what was left out to fit
// the result, globs that matched no file, and near matches if nothing matched.
func (q *query) trailingNotes(f *searchResult, near nearSearches, m meta) string {
	var b strings.Builder
	if m.Reduced != "" {
		fmt.Fprintf(&b, "note: %s to fit the result limit; narrow the pattern, path, glob or type, or lower head_limit\n", map[string]string{
			lessContext: "fewer lines of context shown", lessWidth: "lines shortened",
			noText: "only line numbers shown", noLines: "only match counts per file shown",
		}[m.Reduced])
	}
	for i, used := range f.used {
		if !used && !f.partial {
			fmt.Fprintf(&b, "note: no file matches glob %s; globs are relative to %s, a glob without / matches at any depth\n",
				quotePattern(q.filter.include[i].String()), q.shownPath(f.abs, ""))
		}
	}
	if f.matchingFiles > 0 || f.partial {
		return b.String()
	}
	if f.filtered > 0 {
		fmt.Fprintf(&b, "%s excluded by glob, exclude or type\n", textfmt.Count(f.filtered, "file"))
	}
	near.writeNotes(&b)
	return b.String()
}
