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

// maxNamed bounds the paths that a note names.
const maxNamed = 3

// header returns the first line: the number of matches, the part that is shown,
// the number of searched files, and notes on skipped ones.
func (q *query) header(f *found, s hints, m meta) string {
	var b strings.Builder
	more, files := "", verb(f.files, "file", "files")
	if f.partial {
		more, files = "+", "files"
	}
	switch {
	case f.files == 0 && f.partial:
		b.WriteString("no matches so far")
	case f.files == 0:
		fmt.Fprintf(&b, "0 matches for %s in %s", quoted(q.args.Pattern), q.shownPath(f.abs, ""))
	case q.args.OutputMode == modeFiles:
		fmt.Fprintf(&b, "%d%s %s", f.files, more, verb(f.files, "file matches", "files match"))
	default:
		fmt.Fprintf(&b, "%d%s %s in %d%s %s", f.matches, more, verb(f.matches, "match", "matches"), f.files, more, files)
	}
	switch {
	case f.files == 0 || m.Shown == f.entries:
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
	notes = append(notes, q.remarks(f)...)
	if s.ignored.files > 0 {
		notes = append(notes, s.ignored.remark())
	}
	return b.String() + " (" + strings.Join(notes, "; ") + ")"
}

// appendNote adds a note, unless it is empty.
func appendNote(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// quoted formats a pattern on one line, cut to a bound.
func quoted(pattern string) string {
	const most = 100
	shown := []rune(pathname.Escape(pattern))
	if len(shown) > most {
		shown = append(shown[:most], '…')
	}
	return `"` + string(shown) + `"`
}

// remarks returns notes on files that were not searched, and why.
func (q *query) remarks(f *found) []string {
	var notes []string
	if f.partial {
		notes = append(notes, fmt.Sprintf("stopped after %s: narrow path, glob or type for the rest", f.elapsed.Round(100*time.Millisecond)))
	}
	var skipped []string
	for _, kind := range []struct {
		what outcome
		text string
	}{
		{binary, "binary"}, {tooLarge, q.tooLarge()},
		{unreadable, "unreadable"}, {secretFile, "secret"}, {special, "special"},
	} {
		if n := f.outcomes[kind.what]; n > 0 {
			skipped = append(skipped, fmt.Sprintf("%d %s", n, kind.text)+q.nameSome(f, n, f.named[kind.what]))
		}
	}
	if len(skipped) > 0 {
		notes = append(notes, "not searched: "+strings.Join(skipped, ", "))
	}
	notes = appendNote(notes, q.guessRemark(f))
	if n := f.report.Unreadable; n > 0 {
		var names []string
		for _, fault := range f.report.UnreadableDirs[:min(len(f.report.UnreadableDirs), maxNamed)] {
			names = append(names, q.shownPath(f.abs, fault.Path))
		}
		if n > len(names) {
			names = append(names, "…")
		}
		notes = append(notes, fmt.Sprintf("%s unreadable: %s", verb(n, "1 directory", fmt.Sprint(n)+" directories"), strings.Join(names, ", ")))
	}
	if n := f.report.TooDeep; n > 0 {
		notes = append(notes, textfmt.Count(n, "directory")+" too deep to enter")
	}
	if note := walk.Unread(f.report.Faults, func(path string) string { return q.shownPath(f.abs, path) }); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// tooLarge describes the limit that a too large file exceeds.
func (q *query) tooLarge() string {
	if q.anySize {
		return "with a line over 1G, or (with multiline, which needs the whole file in memory) over 1G"
	}
	return "larger than " + (*size)(&q.MaxFileSize).String()
}

// nameSome lists a few of n files in parentheses; "" if paths is empty.
func (q *query) nameSome(f *found, n int, paths []string) string {
	if len(paths) == 0 || f.isFile {
		return ""
	}
	slices.Sort(paths)
	var names []string
	for _, path := range paths[:min(len(paths), maxNamed)] {
		names = append(names, q.shownPath(f.abs, path))
	}
	if n > len(names) {
		names = append(names, "…")
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// advice returns the notes after the matches: omissions for length, globs that
// matched no file, and near matches if nothing matched.
func (q *query) advice(f *found, s hints, m meta) string {
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
				quoted(q.filter.include[i].String()), q.shownPath(f.abs, ""))
		}
	}
	if f.files > 0 || f.partial {
		return b.String()
	}
	if f.filtered > 0 {
		fmt.Fprintf(&b, "%s excluded by glob, exclude or type\n", textfmt.Count(f.filtered, "file"))
	}
	s.write(&b)
	return b.String()
}
