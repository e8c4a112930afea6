package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

const (
	// shortAnswer and longAnswer are sizes in bytes. Between them a diff
	// gets less context; above longAnswer most of a diff is not context.
	shortAnswer = 300
	longAnswer  = 900
	// headerReserve is the part of the budget for the header and notes, in
	// bytes.
	headerReserve = 4 << 10
)

// render returns the answer to a change that was written, or would be.
func (r request) render(ctx context.Context, c *change, done *fileedit.Outcome) *mcpkit.Result {
	m := newMeta(done)
	m.Replacements = c.replacementCount()
	var head, each strings.Builder
	fmt.Fprintf(&head, "%s  ", done.Before.Shown)
	if done.DryRun {
		head.WriteString("dry run, nothing was written: ")
	}
	if r.createsFile() {
		fmt.Fprintf(&head, "%s: %s, %s", describeCreation(done), textfmt.Count(int(done.Index.Lines), "line"), textfmt.Count(int(done.Index.Size), "byte"))
	} else {
		r.describeMatches(&head, &each, c.matches)
	}
	for _, f := range c.matches {
		m.Steps = append(m.Steps, f.Step.String())
		m.Lines = append(m.Lines, f.LineNumbers...)
	}
	m.Lines = m.Lines[:min(len(m.Lines), maxListed)]
	if !slices.ContainsFunc(c.matches, func(f match.Found) bool { return f.Step != match.Exact }) {
		m.Steps = nil
	}
	var o textdiff.Options
	if c.firstLine > 0 {
		o.KnownOffset, o.KnownLines = c.firstOffset, c.firstLine-1
	}
	fmt.Fprintf(&head, "%s  %s\n%s", describeFormat(done.Index.Format), describeEtag(done), &each)
	d := fitDiff(ctx, c.shown.Diff, o, mcpkit.Budget(ctx), head.Len())
	m.Added, m.Removed = d.Added, d.Removed

	var text strings.Builder
	text.WriteString(head.String() + d.Text)
	appendNotes(&text, &m, done, d, c.warnings)
	if done.Created && done.After.Executable && !done.DryRun {
		text.WriteString("note: made executable, because it begins with #!\n")
	}
	if r.hasUnseenChanges(done.Before) {
		// With its etag, replace could overwrite changes that were
		// never shown.
		fmt.Fprintf(&text, "note: the file also changed elsewhere since you viewed it (etag=%s): view it before you rewrite it\n", done.Before.Seen.Index.Etag)
	}
	return &mcpkit.Result{Text: text.String(), Meta: m}
}

// hasUnseenChanges reports whether the file has changes that the caller has not
// seen, besides this one.
func (r request) hasUnseenChanges(b *fileedit.Before) bool {
	known := r.etag != "" && b.Etag.Matches(r.etag)
	return b.Exists && b.Seen != nil && !b.Masked && !b.IsSeenVersion() && !known
}

// describeFormat returns the encoding, byte order mark and line endings after
// two spaces; "" for UTF-8 without a byte order mark whose lines, if any, all end
// with a line feed.
func describeFormat(f textfile.Format) string {
	if f.Encoding == textfile.UTF8 && f.BOM == 0 && (f.Ending == textfile.LF || f.Ending == textfile.None) {
		return ""
	}
	return "  " + f.String()
}

// describeCreation says whether the file was created or an empty file was
// filled.
func describeCreation(done *fileedit.Outcome) string {
	switch {
	case !done.Created:
		return "written (was empty)"
	case done.DryRun:
		return "would be created"
	}
	return "created"
}

// describeMatches describes how the edits were matched: a single edit in head,
// several edits with a line each in each.
func (r request) describeMatches(head, each *strings.Builder, matches []match.Found) {
	total := 0
	for _, f := range matches {
		total += f.Count
	}
	if len(matches) > 1 {
		fmt.Fprintf(head, "%d edits, %s", len(matches), textfmt.Count(total, "replacement"))
		for i, f := range matches[:min(len(matches), maxListed)] {
			fmt.Fprintf(each, "edit %d: %s%s\n", i+1, describeLines(f), describeIgnored(f))
		}
		if rest := len(matches) - maxListed; rest > 0 {
			fmt.Fprintf(each, "… and %d more edits\n", rest)
		}
		return
	}
	fmt.Fprintf(head, "%s at %s%s", textfmt.Count(total, "replacement"), describeLines(matches[0]), describeIgnored(matches[0]))
}

// describeLines lists the lines at which an edit's places begin.
func describeLines(f match.Found) string {
	var text strings.Builder
	for i := 0; i < len(f.LineNumbers); {
		n := 1
		for i+n < len(f.LineNumbers) && f.LineNumbers[i+n] == f.LineNumbers[i] {
			n++
		}
		switch {
		case i == 0 && n == len(f.LineNumbers):
			fmt.Fprintf(&text, "line %d", f.LineNumbers[i])
		case i == 0:
			fmt.Fprintf(&text, "lines %d", f.LineNumbers[i])
		default:
			fmt.Fprintf(&text, ", %d", f.LineNumbers[i])
		}
		if n > 1 {
			fmt.Fprintf(&text, " (%d times)", n)
		}
		i += n
	}
	if rest := f.Count - len(f.LineNumbers); rest > 0 {
		fmt.Fprintf(&text, " and %d more", rest)
	}
	return text.String()
}

// describeIgnored describes the differences that the match ignored, and how the
// new text was indented.
func describeIgnored(f match.Found) string {
	words := ""
	if f.Step > match.Exact {
		words = ", matched ignoring " + f.Step.String()
	}
	switch {
	case f.NotShifted:
		words += " (new_string has the file's indentation and was not shifted)"
	case f.Step == match.Indentation:
		words += " (new_string indented the same way)"
	}
	return words
}

// appendNotes adds the notes and warnings that follow the diff to text, and
// sets m.Warnings.
func appendNotes(text *strings.Builder, m *meta, done *fileedit.Outcome, d textdiff.Diff, warnings []string) {
	note := func(kind, format string, args ...any) {
		fmt.Fprintf(text, kind+": "+format+"\n", args...)
	}
	if d.Cut > 0 {
		note("note", "diff cut: %d more lines (+%d -%d lines in total)", d.Cut, d.Added, d.Removed)
	}
	if done.Before.Masked && d.Text != "" {
		note("note", "unchanged values are shown as ***")
	}
	for _, n := range done.Notes() {
		note("note", "%s", n)
	}
	for _, w := range warnings {
		note("warning", "%s", w)
	}
	m.Warnings = len(warnings)
}
