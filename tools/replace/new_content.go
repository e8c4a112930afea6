package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/contentcheck"
	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// plan is a call applied to one version of the file: first the arguments, then
// the decision on the new content.
type plan struct {
	arguments
	requireView bool

	before   *fileedit.Before
	old      textfile.Format // of the existing file
	oldText  []byte          // old content in UTF-8, without a byte order mark
	oldLines int64           // including a last line without a line ending
	form     form            // of the new content
	text     string          // new content in UTF-8, with the line endings to write
	told     bool            // the client gave the old file's encoding
	lost     bool            // the new content drops masked values
	notes    []string
	warnings []string
}

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}
func (p *plan) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// decide returns the new content, or an error if it must not be written. Each
// step may process a large content, so decide checks ctx between steps.
func (p *plan) decide(ctx context.Context, fsys *sandbox.FS) (*fileedit.After, error) {
	b := p.before
	if b.Masked && p.Etag != "" {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and therefore no etag: leave etag out", b.Shown)
	}
	if b.Masked && b.Exists && p.Encoding != "" && p.Encoding != string(b.Index.Encoding) {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and is only written in its own encoding: leave encoding out", b.Shown)
	}
	if err := p.readOld(ctx); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	content, err := p.revealed()
	if err != nil {
		return nil, err
	}
	p.chooseForm(fsys, content)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	raw, err := p.form.encode(p.text)
	if err != nil {
		return nil, toolerr.New(toolerr.CodeOf(err), "%s: %w; %s. Nothing was written", b.Shown, err, p.form.why)
	}
	if err := p.certain(); err != nil {
		return nil, err
	}
	// Content that the file already has needs no permission, so that a
	// repeated call, as after a lost answer, succeeds. For a masked file
	// this applies only to content equal to what view shows: otherwise a
	// caller could guess a masked value by trying.
	always := b.Masked && b.Exists && !p.asShown()
	if !b.Exists || always || !bytes.Equal(raw, b.Content) {
		if err := p.allowed(); err != nil {
			return nil, err
		}
	}
	after := fileedit.Whole(raw)
	after.Always = always
	if p.form.encoding != textfile.UTF8 {
		after.Encoding = p.form.encoding
	}
	after.Guessed, after.EncodingNamed = p.form.guessed, p.told || p.Encoding != ""
	after.Executable = !b.Exists && bytes.HasPrefix(raw, []byte("#!"))
	return after, context.Cause(ctx)
}

// certain returns an error if the content can only be written under the guessed
// encoding. Programs that use another encoding could not read it.
func (p *plan) certain() error {
	if !p.form.guessed {
		return nil
	}
	guess := textfile.NewGuess(p.before.Content, p.form.encoding)
	known, text := string(p.oldText), p.text
	if p.before.Masked { // as shown to the caller
		known, text = masked(known), p.Content
	}
	if guess.ProvesText(known, text) {
		return nil
	}
	return toolerr.New(toolerr.BadEncoding, "%s: the file's encoding is a guess (it may be %s), and content depends on it; nothing was written. View the file with encoding=… to find the right one, then call again with that encoding", p.before.Shown, guess).
		With("candidates", append([]textfile.Encoding{guess.Encoding}, guess.Rivals...))
}

// sinceLines is the number of diff lines shown of changes since the last view.
const sinceLines = 40

// allowed returns an error if the call would discard content that the caller
// has not seen.
func (p *plan) allowed() error {
	b := p.before
	switch {
	case p.requireView && b.Exists && b.Seen == nil && p.Etag == "":
		return toolerr.New(toolerr.NotViewed, "%s exists but has not been viewed yet, nothing was written: view it first, then replace it (this server runs with --require-view)", b.Shown)
	case p.Overwrite:
		return nil
	case !b.Exists && p.Etag != "":
		return toolerr.New(toolerr.Stale, "%s does not exist, so etag=%s does not match; nothing was written. To create it, leave etag out.", b.Shown, p.Etag)
	case !b.Exists:
		return nil
	case p.Etag != "" && !b.Etag.Matches(p.Etag), p.Etag == "" && b.Seen != nil && !b.Fresh():
		return p.stale()
	case p.old.Binary:
		return toolerr.New(toolerr.BinaryFile, "%s is a binary file (%d bytes), nothing was written: to replace it with text anyway, call again with overwrite=true", b.Shown, b.Stat.Size)
	}
	return nil
}

// stale returns the error for a file that changed: the changes since the last
// view, and how to continue.
func (p *plan) stale() error {
	b := p.before
	if b.Masked {
		return toolerr.New(toolerr.Stale, "%s changed since you viewed it; nothing was written. View it again, or call again with overwrite=true, which discards that change.", b.Shown)
	}
	was := p.Etag
	if was == "" {
		was = b.Seen.Index.Etag.String()
	}
	what, when, then := "View it to see the current content.", "changed since you viewed it", "then"
	if b.Seen == nil || !b.Seen.Index.Etag.Matches(was) {
		when, then = "does not have the etag you gave", "given"
	}
	if b.Seen != nil && b.Seen.Index.Etag.Matches(was) {
		if d := b.Since(sinceLines); d.Text != "" {
			what = fmt.Sprintf("Since you viewed it (+%d -%d lines):\n%s", d.Added, d.Removed, d.Text)
			if d.Cut > 0 {
				what += fmt.Sprintf("(%d more lines; view the file to see all)\n", d.Cut)
			}
			if d.Partial {
				what += "(only lines you viewed are compared; others may differ too)\n"
			}
		} else if d.Partial {
			what = "The change is not in the lines you viewed: view it to see the current content."
		}
	}
	return toolerr.New(toolerr.Stale, "%s %s: etag=%s %s, etag=%s now; nothing was written.\nTo continue, merge the change into content and call again with etag=%s, or discard it with overwrite=true.\n%s",
		b.Shown, when, was, then, b.Etag, b.Etag, strings.TrimSuffix(what, "\n")).With("etag", b.Etag.String())
}

// maxJudged bounds the content checked for mistakes that models make, in bytes.
// A model does not write longer content.
const maxJudged = 1 << 20

// judge adds warnings about content that is probably not intended.
func (p *plan) judge(done *fileedit.Outcome) {
	b := p.before
	if before := p.oldLines; b.Exists && !p.old.Binary && done.Index.Lines*2 < before {
		p.warn("the file now has %s and had %d: if content was only part of the file, undo and use edit", textfmt.Count(done.Index.Lines, "line"), before)
	}
	if n := literalNewlines(p.Content); n > 0 {
		p.warn(`content has no line break, but a backslash followed by n %d times: in JSON a line break is \n with one backslash`, n)
	}
	if len(p.Content) <= maxJudged && !b.Masked {
		if warning := contentcheck.Omission(p.Content, ""); warning != "" {
			// An omission marker that the old file has too is not a
			// mistake.
			if warning = contentcheck.Omission(p.Content, string(p.oldText)); warning != "" {
				p.warn("%s", warning)
			}
		}
	}
	looks := done.Index.Format
	if p.form.encoding != textfile.UTF8 && done.After.Size() <= maxJudged {
		looks = textfile.Detect(done.After.Bytes())
	}
	switch {
	case looks.Binary:
		p.warn("content has control characters that make the file binary: view will not show it")
	case looks.Encoding != p.form.encoding && looks.Encoding != textfile.UTF8:
		p.warn("the file is written as %s, but looks like %s; give view the encoding", p.form.encoding, looks.Encoding)
	}
}
