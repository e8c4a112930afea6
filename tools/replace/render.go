package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

const (
	// headerReserve is the part of the budget for the header and notes, in
	// bytes.
	headerReserve = 1 << 10
)

// render returns the answer to the call.
func (p *plan) render(ctx context.Context, done *fileedit.Outcome) *mcpkit.Result {
	b, index := p.before, &done.Index
	m := meta{
		Path: b.Shown, Created: done.Created, Unchanged: done.Unchanged, DryRun: p.DryRun,
		Lines: index.Lines, Size: index.Size,
	}
	etag := index.Etag
	if p.DryRun {
		etag = b.Etag
	}
	etagText := "values hidden"
	switch {
	case b.Masked:
	case p.DryRun && !b.Exists:
		etagText = "not written"
	default:
		m.Etag = etag.String()
		etagText = "etag=" + m.Etag
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s: %s, %s%s  %s  %s\n", b.Shown, p.describeOutcome(done),
		textfmt.Count(index.Lines, "line"), textfmt.Count(index.Size, "byte"), p.describeOldContent(done), p.describeFormat(index.Format), etagText)
	var diff textdiff.Diff
	if !done.Unchanged {
		p.addContentWarnings(done)
		p.addEffectNotes(done)
		diff = p.contentDiff(ctx)
		m.Added, m.Removed = diff.Added, diff.Removed
	}
	for _, w := range p.warnings {
		fmt.Fprintf(&text, "warning: %s\n", w)
	}
	for _, n := range append(p.notes, done.Notes()...) {
		fmt.Fprintf(&text, "note: %s\n", n)
	}
	m.Warnings = len(p.warnings)
	if !done.Unchanged {
		p.writeDiff(&text, diff)
	}
	return &mcpkit.Result{Text: text.String(), Meta: m}
}

// describeOutcome says whether the file was created, replaced or unchanged, or
// would be.
func (p *plan) describeOutcome(done *fileedit.Outcome) string {
	switch {
	case done.Unchanged:
		return "unchanged"
	case p.DryRun && done.Created:
		return "dry run, would be created"
	case p.DryRun:
		return "dry run, would be replaced"
	case done.Created:
		return "created"
	}
	return "replaced"
}

// describeFormat describes the format of the written content. detected is the
// format that detection gives for the result, which may differ.
func (p *plan) describeFormat(detected textfile.Format) string {
	if detected.Encoding != p.target.encoding && detected.Encoding != textfile.UTF8 {
		return string(p.target.encoding)
	}
	return detected.String()
}

// describeOldContent returns the size of the replaced content in parentheses;
// "" if nothing was replaced.
func (p *plan) describeOldContent(done *fileedit.Outcome) string {
	if !p.before.Exists || done.Unchanged {
		return ""
	}
	size := textfmt.Count(int64(len(p.before.Content)), "byte")
	if p.oldFormat.Binary {
		return fmt.Sprintf(" (was binary, %s)", size)
	}
	return fmt.Sprintf(" (was %s, %s)", textfmt.Count(p.oldLines, "line"), size)
}

// addEffectNotes adds notes about effects that the caller may not expect.
func (p *plan) addEffectNotes(done *fileedit.Outcome) {
	b := p.before
	switch {
	case !done.After.Executable:
	case p.DryRun:
		p.addNote("would be made executable, because it begins with #!")
	case done.Written.Stat.Mode&0o111 != 0:
		p.addNote("made executable, because it begins with #!")
	}
	if !b.Exists && b.Seen != nil {
		p.addNote("the file existed when you viewed it and had been deleted since")
	}
	if p.target.ending == "" && strings.Contains(p.text, "\r\n") && !b.Exists {
		p.addNote("lines end in crlf, as in content")
	}
	if p.oldFormat.Ending == textfile.Mixed {
		p.addNote("the old file mixed lf and crlf; all lines now end in %s", endingName(p.target.ending))
	}
	if p.DryRun || !b.Exists || done.NoUndo != nil {
		return
	}
	switch {
	case p.losesMasked:
		p.addNote("masked values were replaced or removed; edit with undo=true restores them")
	case b.Seen == nil && p.Etag == "":
		p.addNote("the file had not been viewed; edit with undo=true restores the old content")
	case p.Overwrite && !b.IsSeenVersion() && (p.Etag == "" || !b.Etag.Matches(p.Etag)):
		p.addNote("the file had changed since you viewed it; edit with undo=true restores that content")
	}
}

// contentDiff returns the diff between the old and the new content, with masked
// values, cut to the budget of the answer. It is empty if the old content is
// binary.
func (p *plan) contentDiff(ctx context.Context) textdiff.Diff {
	if p.oldFormat.Binary {
		return textdiff.Diff{}
	}
	old, now := p.oldText, p.text
	if p.before.Masked {
		old, now = secret.Mask(old), maskValues(now)
	}
	if p.oldFormat.Ending == textfile.CR {
		old, now = bytes.ReplaceAll(old, []byte{'\r'}, []byte{'\n'}), strings.ReplaceAll(now, "\r", "\n")
	}
	budget := mcpkit.Budget(ctx)
	// The diff needs no file names, since the header has the path.
	o := textdiff.Options{MaxLines: maxDiffLines, MaxLineBytes: maxFullLine, WindowChars: longLineWindow, Stopped: func() bool { return ctx.Err() != nil }}
	if !p.before.Exists && !p.DryRun {
		o.MaxLines = maxNewFileLines
	}
	changes := textdiff.Between(old, now)
	for {
		diff := textdiff.Unified(old, changes, o)
		if len(diff.Text) <= budget-headerReserve || o.MaxLines <= 2 {
			return diff
		}
		o.MaxLines, o.MaxLineBytes = o.MaxLines/2, max(o.MaxLineBytes/2, 40)
		o.WindowChars = min(o.WindowChars, o.MaxLineBytes)
	}
}

// writeDiff adds the diff to text, and says how much of it was cut.
func (p *plan) writeDiff(text *strings.Builder, diff textdiff.Diff) {
	text.WriteString(diff.Text)
	if diff.Text != "" && !strings.HasSuffix(diff.Text, "\n") {
		text.WriteByte('\n')
	}
	if diff.Cut > 0 {
		fmt.Fprintf(text, "(%d more diff lines; +%d -%d in total)\n", diff.Cut, diff.Added, diff.Removed)
	}
	if diff.Text == "" && p.before.Masked && p.before.Exists {
		text.WriteString("(same names and lines; values are not compared)\n")
	}
}
