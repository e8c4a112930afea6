package main

import (
	"cmp"
	"context"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// change is a planned change of a file, not yet written.
type change struct {
	file   *splice.File    // before the change
	result *splice.Result  // file with the changes
	after  *fileedit.After // content to write
	shown  *splice.Result  // result with masked values as ***; result itself if the file has none

	matches                []match.Found // one for each edit; none if the file is created
	firstOffset, firstLine int           // offset in file.Text and line number of the first place; line 0: unknown
	warnings               []string
	encodingNamed          bool // the caller gave the file's encoding, now or when viewing the file
}

// decodeFile decodes the file in its encoding. For a missing or empty file it
// returns an empty one in the encoding that the new content will have.
// encodingNamed reports that the caller gave the encoding, now or when viewing
// the file.
func (r request) decodeFile(ctx context.Context, b *fileedit.Before) (f *splice.File, encodingNamed bool, err error) {
	if !b.Exists || len(b.Content) == 0 {
		f, err = splice.OpenIndexed(ctx, nil, &textfile.Index{Format: textfile.Format{Encoding: cmp.Or(r.encoding, textfile.UTF8), Ending: textfile.None}})
		return f, r.encoding != "", err
	}
	index, encodingNamed, err := b.IndexIn(ctx, r.encoding)
	if err != nil {
		return nil, false, err
	}
	f, err = splice.OpenIndexed(ctx, b.Content, &index)
	return f, encodingNamed, err
}

// planChange computes the change that the edits make in the version b of the file. It
// returns the errors of planEdits or planCreation, INVALID_PARAMS for arguments that a
// masked file does not allow, BINARY_FILE, and BAD_ENCODING if the file's encoding lacks a
// character.
func (r request) planChange(ctx context.Context, b *fileedit.Before) (*change, error) {
	if b.Masked && r.etag != "" {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and therefore no etag: leave etag out", b.Shown)
	}
	if b.Masked && b.Exists && r.encoding != "" && r.encoding != b.Index.Encoding {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and is only edited in its own encoding: leave encoding out", b.Shown)
	}
	file, encodingNamed, err := r.decodeFile(ctx, b)
	if toolerr.Is(err, toolerr.BinaryFile) {
		err = toolerr.New(toolerr.BinaryFile, "%s: %w", b.Shown, err)
	}
	if err != nil {
		return nil, err
	}
	c := &change{file: file, encodingNamed: encodingNamed}
	if r.createsFile() {
		err = r.planCreation(ctx, c, b)
	} else {
		err = r.planEdits(ctx, c, b)
	}
	if err == nil {
		err = c.checkEncodingGuess(b)
	}
	if toolerr.Is(err, toolerr.BadEncoding) {
		err = toolerr.New(toolerr.BadEncoding, "%s: %w; nothing was changed", b.Shown, err)
	}
	if err != nil {
		return nil, err
	}
	c.after = fileedit.Splice(b.Content, c.result.RawChanges())
	c.after.AlwaysWrite = b.Masked
	if err := c.checkStaysText(ctx, b); err != nil {
		return nil, err
	}
	c.addWarnings(r, b)
	return c, nil
}

// planCreation sets c.result and c.shown to the content of a new file. It returns
// EXISTS if the file has content, STALE for another etag, NO_CHANGE if the file and the
// new text are empty, and INVALID_PARAMS for new text with masked values.
func (r request) planCreation(ctx context.Context, c *change, b *fileedit.Before) error {
	f, text := c.file, r.edits[0].New
	switch {
	case len(f.Text) > f.BodyStart:
		return toolerr.New(toolerr.Exists, "%s exists and has %s, and an empty old_string only creates a file; nothing was changed. To insert, set old_string to an existing line and new_string to that line with the new ones. To rewrite the whole file, use replace.", b.Shown, textfmt.Count(f.LineCount(), "line"))
	case r.etag != "" && (!b.Exists || !b.Etag.Matches(r.etag)):
		return toolerr.New(toolerr.Stale, "%s no longer has etag=%s: it %s now. To create it, leave etag out.", b.Shown, r.etag, map[bool]string{true: "is empty", false: "does not exist"}[b.Exists])
	case text == "" && b.Exists:
		return toolerr.New(toolerr.NoChange, "%s is empty, as are old_string and new_string: no changes to make", b.Shown)
	case b.Masked && writesMaskAsValue(text, nil):
		return toolerr.New(toolerr.InvalidParams, "new_string has *** as a value, which only represents a masked value: give the value itself, or leave the line out")
	}
	var changes []textdiff.Change
	if f.Encoding.IsUTF16() && len(b.Content) == 0 && text != "" {
		text = "\ufeff" + text // without the mark the encoding is hard to tell
	}
	if text != "" {
		changes = []textdiff.Change{{Start: f.BodyStart, End: f.BodyStart, New: text}}
	}
	var err error
	c.result, err = f.Apply(ctx, changes)
	c.shown = c.result
	return err
}

// planEdits finds the edits and sets what depends on them in c: the matches,
// the result and the warnings.
func (r request) planEdits(ctx context.Context, c *change, b *fileedit.Before) error {
	version := match.Version{CurrentEtag: b.Etag, GivenEtag: r.etag, Seen: b.Seen}
	o := match.Options{Name: b.Shown, Strict: r.strict, Changed: version.HasChanged()}
	if b.Masked {
		o.Changed = b.Seen != nil && !b.IsSeenVersion()
		return r.planMaskedEdits(ctx, c, o)
	}
	plan, err := match.Find(ctx, c.file, r.edits, o)
	if err != nil {
		return err
	}
	if err := match.CheckStale(ctx, c.file, plan.Places, version, o); err != nil {
		return err
	}
	c.setMatches(plan)
	c.result, err = c.file.Apply(ctx, plan.Changes)
	c.shown = c.result
	return err
}

// setMatches records how the edits were matched, and the warnings.
func (c *change) setMatches(plan *match.Plan) {
	c.matches, c.warnings = plan.Found, plan.Warnings
	first := plan.Places[0]
	c.firstOffset, c.firstLine = first.Start, plan.Found[first.Edit].LineNumbers[0]
}

// planMaskedEdits is planEdits for a file with masked values. It does not check whether
// the edited lines were viewed, since no record of the lines of such files is kept. It
// returns the errors of toFileChanges, too.
func (r request) planMaskedEdits(ctx context.Context, c *change, o match.Options) error {
	view := newMaskedView(c.file)
	plan, err := match.Find(ctx, view.shown, r.edits, o)
	if toolerr.Is(err, toolerr.NoMatch) {
		return toolerr.New(toolerr.NoMatch, "%w\nThe file's values are masked: write *** for them in old_string, as shown; *** in new_string keeps the value.", err)
	}
	if err != nil {
		return err
	}
	changes, err := view.toFileChanges(plan.Changes)
	if err != nil {
		return err
	}
	c.setMatches(plan)
	if c.result, err = c.file.Apply(ctx, changes); err != nil {
		return err
	}
	c.shown, err = view.shown.Apply(ctx, plan.Changes)
	return err
}

// replacementCount returns the number of replaced places, of all edits.
func (c *change) replacementCount() int {
	n := 0
	for _, f := range c.matches {
		n += f.Count
	}
	return n
}
