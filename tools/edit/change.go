package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/contentcheck"
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
	file     *splice.File
	result   *splice.Result
	after    *fileedit.After // the file's new content
	shown    *splice.Result  // the same with masked values; otherwise equal to result
	found    []match.Found
	at, line int // position and line of the first place; line 0: unknown
	warnings []string
	told     bool // the caller gave the file's encoding, now or when viewing it
}

// open decodes the file in its encoding or, for a new one, in the encoding that
// it will get. told reports that the caller gave it.
func (a request) open(ctx context.Context, b *fileedit.Before) (f *splice.File, told bool, err error) {
	if !b.Exists || len(b.Content) == 0 {
		f, err = splice.OpenAs(ctx, nil, &textfile.Index{Format: textfile.Format{Encoding: cmp.Or(a.encoding, textfile.UTF8), Ending: textfile.None}})
		return f, a.encoding != "", err
	}
	index, told, err := b.Read(ctx, a.encoding)
	if err != nil {
		return nil, false, err
	}
	f, err = splice.OpenAs(ctx, b.Content, &index)
	return f, told, err
}

// checkGuess refuses a change that is right only if the guess of the file's
// encoding is: other programs could not read the result.
func (c *change) checkGuess(b *fileedit.Before) error {
	if c.told && c.file.Encoding != textfile.UTF8 && b.Exists && b.Index.Encoding == textfile.UTF8 && b.Index.Invalid == 0 && !plain(b.Content) &&
		slices.ContainsFunc(c.result.Changes, func(change textdiff.Change) bool { return !plain([]byte(change.New)) }) {
		return toolerr.New(toolerr.BadEncoding, "the file is valid utf-8; new text in %s would make it invalid: leave encoding out", c.file.Encoding)
	}
	if !c.file.Guessed {
		return nil
	}
	guess := textfile.NewGuess(b.Content, c.file.Encoding)
	changes := c.result.Raw()
	for i, change := range changes {
		if !guess.Proves(change.Start, change.End, c.result.Changes[i].New) {
			return toolerr.New(toolerr.BadEncoding, "the file's encoding is a guess (it may be %s), and this edit depends on it: view the file with encoding=… to find the right one, then send the edit with that encoding", guess).
				With("candidates", append([]textfile.Encoding{guess.Encoding}, guess.Rivals...))
		}
	}
	return nil
}

// plain reports whether text is ASCII.
func plain(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// plan computes the change of a version of the file by the edits.
func (a request) plan(ctx context.Context, b *fileedit.Before) (*change, error) {
	if b.Masked && a.etag != "" {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and therefore no etag: leave etag out", b.Shown)
	}
	if b.Masked && b.Exists && a.encoding != "" && a.encoding != b.Index.Encoding {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and is only edited in its own encoding: leave encoding out", b.Shown)
	}
	f, told, err := a.open(ctx, b)
	if toolerr.Is(err, toolerr.BinaryFile) {
		err = toolerr.New(toolerr.BinaryFile, "%s: %w", b.Shown, err)
	}
	if err != nil {
		return nil, err
	}
	c := &change{file: f, told: told}
	if a.creates() {
		err = a.create(ctx, c, b)
	} else {
		err = a.change(ctx, c, b)
	}
	if err == nil {
		err = c.checkGuess(b)
	}
	if toolerr.Is(err, toolerr.BadEncoding) {
		err = toolerr.New(toolerr.BadEncoding, "%s: %w; nothing was changed", b.Shown, err)
	}
	if err != nil {
		return nil, err
	}
	c.after = fileedit.Splice(b.Content, c.result.Raw())
	c.after.Always = b.Masked
	if err := c.staysText(ctx, b); err != nil {
		return nil, err
	}
	c.warn(a, b)
	return c, nil
}

// create sets the content of a file that is missing or empty.
func (a request) create(ctx context.Context, c *change, b *fileedit.Before) error {
	f, text := c.file, a.edits[0].New
	switch {
	case len(f.Text) > f.Body:
		return toolerr.New(toolerr.Exists, "%s exists and has %s, and an empty old_string only creates a file; nothing was changed. To insert, set old_string to an existing line and new_string to that line with the new ones. To rewrite the whole file, use replace.", b.Shown, textfmt.Count(f.Lines(), "line"))
	case a.etag != "" && (!b.Exists || !b.Etag.Matches(a.etag)):
		return toolerr.New(toolerr.Stale, "%s no longer has etag=%s: it %s now. To create it, leave etag out.", b.Shown, a.etag, map[bool]string{true: "is empty", false: "does not exist"}[b.Exists])
	case text == "" && b.Exists:
		return toolerr.New(toolerr.NoChange, "%s is empty, as are old_string and new_string: no changes to make", b.Shown)
	case b.Masked && writesHidden(text, nil):
		return toolerr.New(toolerr.InvalidParams, "new_string has *** as a value, which only represents a masked value: give the value itself, or leave the line out")
	}
	var changes []textdiff.Change
	if f.Encoding.Wide() && len(b.Content) == 0 && text != "" {
		text = "\ufeff" + text // without the mark the encoding is hard to tell
	}
	if text != "" {
		changes = []textdiff.Change{{Start: f.Body, End: f.Body, New: text}}
	}
	var err error
	c.result, err = f.Apply(ctx, changes)
	c.shown = c.result
	return err
}

// change finds and applies edits.
func (a request) change(ctx context.Context, c *change, b *fileedit.Before) error {
	version := match.Version{Now: b.Etag, Given: a.etag, Seen: b.Seen}
	o := match.Options{Name: b.Shown, Strict: a.strict, Changed: version.Changed()}
	if b.Masked {
		o.Changed = b.Seen != nil && !b.Fresh()
		return a.changeHidden(ctx, c, o)
	}
	plan, err := match.Find(ctx, c.file, a.edits, o)
	if err != nil {
		return err
	}
	if err := match.Fresh(ctx, c.file, plan.Places, version, o); err != nil {
		return err
	}
	c.take(plan)
	c.result, err = c.file.Apply(ctx, plan.Changes)
	c.shown = c.result
	return err
}

// take records how the edits were matched.
func (c *change) take(plan *match.Plan) {
	c.found, c.warnings = plan.Found, plan.Warnings
	first := plan.Places[0]
	c.at, c.line = first.Start, plan.Found[first.Edit].Lines[0]
}

// changeHidden changes a file with masked values. The viewed version gives no
// proof for it, since no record of the relevant lines is kept.
func (a request) changeHidden(ctx context.Context, c *change, o match.Options) error {
	hides := newMaskedView(c.file)
	plan, err := match.Find(ctx, hides.shown, a.edits, o)
	if toolerr.Is(err, toolerr.NoMatch) {
		return toolerr.New(toolerr.NoMatch, "%w\nThe file's values are masked: write *** for them in old_string, as shown; *** in new_string keeps the value.", err)
	}
	if err != nil {
		return err
	}
	changes, err := hides.reveal(plan.Changes)
	if err != nil {
		return err
	}
	c.take(plan)
	if c.result, err = c.file.Apply(ctx, changes); err != nil {
		return err
	}
	c.shown, err = hides.shown.Apply(ctx, plan.Changes)
	return err
}

// staysText refuses a change after which the file would not be text, because of
// new or remaining bytes, and warns if the file's encoding would be detected as
// another one.
func (c *change) staysText(ctx context.Context, b *fileedit.Before) error {
	controls := false
	for _, change := range c.result.Changes {
		controls = controls || strings.ContainsFunc(change.New, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
	}
	if c.file.Encoding == textfile.UTF8 && c.file.NUL == 0 && c.file.Invalid == 0 && !controls {
		return nil
	}
	index, err := textfile.Scan(ctx, c.after, c.after.Size(), textfile.Options{})
	if err != nil {
		return err
	}
	const refused = "this change would make %s binary, so that it could not be viewed or edited; nothing was changed. "
	switch format := index.Format; {
	case c.told && !controls && c.file.NUL == 0: // as the caller says
		return nil
	case format.Binary && controls:
		return toolerr.New(toolerr.BinaryFile, refused+"Look for control characters in new_string, for example a \\u0000 that should be \\\\u0000.", b.Shown)
	case format.Binary && c.file.NUL > 0:
		return toolerr.New(toolerr.BinaryFile, refused+"It has %s, from line %d on. Remove them first, with a separate edit or a command such as tr -d '\\000'.",
			b.Shown, textfmt.Count(c.file.NUL, "NUL character"), c.file.Numbers()(bytes.IndexByte(c.file.Text, 0)))
	case format.Binary:
		return toolerr.New(toolerr.BinaryFile, refused+"The result has too many bytes that are not valid %s: remove them first, with a command.", b.Shown, c.file.Encoding)
	case format.NUL > c.file.NUL:
		c.warnings = append(c.warnings, fmt.Sprintf("new_string has %s", textfmt.Count(format.NUL-c.file.NUL, "NUL character")))
	case format.Encoding != c.file.Encoding && format.Encoding != textfile.UTF8:
		c.warnings = append(c.warnings, fmt.Sprintf("the file is written as %s, but now looks like %s; give view the encoding", c.file.Encoding, format.Encoding))
	}
	return nil
}

// encoding returns the encoding of the new content, or "" for UTF-8. Detection
// from the content might give another one.
func (c *change) encoding() textfile.Encoding {
	if c.file.Encoding == textfile.UTF8 {
		return ""
	}
	return c.file.Encoding
}

// replacements returns the number of replaced places.
func (c *change) replacements() int {
	n := 0
	for _, f := range c.found {
		n += f.Count
	}
	return n
}

// maxLinted bounds the files that are parsed, in bytes.
const maxLinted = 1 << 20

// warn adds warnings about the new content.
func (c *change) warn(a request, b *fileedit.Before) {
	for i, e := range a.edits {
		warning := contentcheck.Omission(e.New, e.Old)
		if warning == "" {
			continue
		}
		if len(a.edits) > 1 {
			warning = fmt.Sprintf("edit %d: %s", i+1, warning)
		}
		c.warnings = append(c.warnings, warning)
	}
	if b.Masked || max(c.result.Size(), len(c.file.Text)) > maxLinted { // a parser's message may quote a value
		return
	}
	before := c.file.Text
	if !b.Exists {
		before = nil
	}
	if warning := contentcheck.Syntax(b.Shown, before, patched(c.file.Text, c.result.Changes)); warning != "" {
		c.warnings = append(c.warnings, warning)
	}
}

// clip cuts text to most characters for a message.
func clip(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
