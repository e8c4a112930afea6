package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// headerBytes is reserved for the first line and notes.
const headerBytes = 1000

// maxNamedDirs is the largest number of unreadable directories that are named.
const maxNamedDirs = 3

// render returns the result, with as many paths as fit into budget bytes. It
// measures the lines first, so that the text, which may be long, is built only
// once.
func (q *query) render(f *searchResult, budget int) *mcpkit.Result {
	shown, size := 0, 0
	for _, m := range f.page {
		line := q.lineSize(f, m)
		if size+line > budget-headerBytes && shown > 0 {
			break
		}
		size += line
		shown++
	}
	f.page = f.page[:shown]
	m := meta{Count: shown, Total: f.total, Ignored: f.ignored, Unreadable: f.report.Unreadable, Partial: f.partial}
	if end := q.args.Offset + shown; shown > 0 && end < f.total {
		m.Truncated, m.NextOffset = true, end
	}
	header := q.header(f, m)
	var text strings.Builder
	text.Grow(len(header) + 1 + size)
	text.WriteString(header)
	text.WriteByte('\n')
	for _, m := range f.page {
		text.WriteString(q.shownPath(f, m.path))
		text.WriteString(m.suffix())
		text.WriteByte('\n')
	}
	return &mcpkit.Result{Text: text.String(), Meta: m, Rows: func() any { return q.rows(f) }}
}

// lineSize returns the length of a match's line in bytes, including the line
// break.
func (q *query) lineSize(f *searchResult, m match) int {
	return len(q.shownPath(f, m.path)) + len(m.suffix()) + 1
}

// suffix returns the text shown after the path of a match. It returns "" for an
// ordinary file.
func (m match) suffix() string {
	switch {
	case m.isDir && m.secret:
		return "/" + secretMark
	case m.isDir:
		return "/"
	case m.secret:
		return secretMark
	}
	return ""
}

// secretMark is the suffix of a file that no tool reads.
const secretMark = "  (secret, not readable)"

// rows returns the matches of the page for --structured.
func (q *query) rows(f *searchResult) []row {
	list := make([]row, 0, len(f.page))
	for _, m := range f.page {
		r := row{Path: q.shownPath(f, m.path), Type: "file", Secret: m.secret}
		if m.isDir {
			r.Type = "directory"
		}
		if m.mtime != 0 {
			r.Modified = time.Unix(0, m.mtime).Format(time.RFC3339Nano)
		}
		list = append(list, r)
	}
	return list
}

// shownPath returns a path as shown in results; every tool accepts it. rel is
// relative to the starting directory.
func (q *query) shownPath(f *searchResult, rel string) string {
	dir := f.shownDir
	if q.args.Absolute {
		dir = pathname.Escape(filepath.ToSlash(f.absDir))
	}
	if dir == "." {
		return pathname.Escape(rel)
	}
	return strings.TrimSuffix(dir, "/") + "/" + pathname.Escape(rel)
}

// header returns the first line: the numbers of matches, their order, and
// notes.
func (q *query) header(f *searchResult, m meta) string {
	var b strings.Builder
	more := ""
	if f.partial {
		more = "+"
	}
	switch {
	case f.total == 0:
		b.WriteString("no " + q.noun(0) + " so far")
	case m.Count == f.total && !f.partial:
		b.WriteString(q.countNoun(f.total))
	case m.Count == 0:
		fmt.Fprintf(&b, "0 of %d%s %s from offset %d", f.total, more, q.noun(f.total), q.args.Offset)
	case q.args.Offset == 0:
		fmt.Fprintf(&b, "%d of %d%s %s", m.Count, f.total, more, q.noun(f.total))
	default:
		fmt.Fprintf(&b, "%d-%d of %d%s %s", q.args.Offset+1, q.args.Offset+m.Count, f.total, more, q.noun(f.total))
	}
	if q.args.Sort == "mtime" {
		b.WriteString(", newest first")
	} else {
		b.WriteString(", by path")
	}
	var notes []string
	if m.NextOffset > 0 {
		notes = append(notes, fmt.Sprintf("offset=%d for more", m.NextOffset))
	}
	if notes = append(notes, q.omissionNotes(f)...); len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, "; ") + ")")
	}
	return b.String()
}

// omissionNotes returns notes about what the search left out.
func (q *query) omissionNotes(f *searchResult) []string {
	var notes []string
	if note := q.fs.RootNote(); note != "" && q.args.Path == "" && !filepath.IsAbs(q.args.Pattern) {
		notes = append(notes, note)
	}
	if f.partial {
		notes = append(notes, fmt.Sprintf("stopped after %s with %s searched: narrow path or pattern for the rest",
			f.elapsed.Round(100*time.Millisecond), textfmt.Count(f.report.Files+f.report.Dirs, "path")))
	}
	if f.ignored > 0 || f.ignoredAtLeast {
		more := ""
		if f.ignoredAtLeast {
			more = "+"
		}
		noun := "paths"
		if f.ignored == 1 && !f.ignoredAtLeast {
			noun = "path"
		}
		notes = append(notes, fmt.Sprintf("%d%s ignored %s skipped, no_ignore=true to include", f.ignored, more, noun))
	}
	if n := f.report.Unreadable; n > 0 {
		var names []string
		for _, fault := range f.report.UnreadableDirs[:min(len(f.report.UnreadableDirs), maxNamedDirs)] {
			names = append(names, q.shownPath(f, fault.Path))
		}
		if n > len(names) {
			names = append(names, "…")
		}
		notes = append(notes, fmt.Sprintf("%d unreadable: %s", n, strings.Join(names, ", ")))
	}
	if n := f.report.TooDeep; n > 0 {
		notes = append(notes, textfmt.Count(n, "directory")+" too deep to enter")
	}
	if note := walk.UnreadNote(f.report.Faults, func(path string) string { return q.shownPath(f, path) }); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// noun returns the noun for n results of the wanted type, such as "files".
func (q *query) noun(n int) string {
	_, noun, _ := strings.Cut(q.countNoun(n), " ")
	return noun
}

// countNoun returns n with the noun for args.Type: files, directories or paths.
func (q *query) countNoun(n int) string {
	return textfmt.Count(n, cmp.Or(map[string]string{"f": "file", "d": "directory"}[q.args.Type], "path"))
}
