package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// plan is a call applied to one version of the file: the arguments, then what
// is decided about the new content.
type plan struct {
	arguments
	requireView bool

	before        *fileedit.Before // the file as it is
	oldFormat     textfile.Format  // of the existing file
	oldText       []byte           // existing content in UTF-8, without a byte order mark
	oldLines      int64            // number of lines of oldText, including a last one without a line ending
	target        byteFormat       // format of the new content
	text          string           // new content in UTF-8, with the line endings to write
	encodingNamed bool             // the client gave the existing file's encoding, now or when viewing the file
	losesMasked   bool             // the new content lacks masked values that the file has
	notes         []string
	warnings      []string
}

// addNote adds a note to the answer.
func (p *plan) addNote(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// addWarning adds a warning to the answer.
func (p *plan) addWarning(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// newContent returns the content to write, or an error if it must not be written: those
// of checkOverwrite, revealMasked and the encoding, and INVALID_PARAMS for arguments that
// a masked file does not allow. Each step may process a large content, so newContent
// checks ctx between steps.
func (p *plan) newContent(ctx context.Context, fsys *sandbox.FS) (*fileedit.After, error) {
	b := p.before
	if b.Masked && p.Etag != "" {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and therefore no etag: leave etag out", b.Shown)
	}
	if b.Masked && b.Exists && p.Encoding != "" && p.Encoding != string(b.Index.Encoding) {
		return nil, toolerr.New(toolerr.InvalidParams, "%s has masked values and is only written in its own encoding: leave encoding out", b.Shown)
	}
	if err := p.readOldContent(ctx); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	content, err := p.revealMasked()
	if err != nil {
		return nil, err
	}
	p.chooseFormat(fsys, content)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	raw, err := p.target.encode(p.text)
	if err != nil {
		return nil, toolerr.New(toolerr.CodeOf(err), "%s: %w; %s. Nothing was written", b.Shown, err, p.target.reason)
	}
	if err := p.checkEncodingGuess(); err != nil {
		return nil, err
	}
	// Content that the file already has needs no permission, so that a
	// repeated call, as after a lost answer, succeeds. For a masked file
	// this applies only to content equal to what view shows: otherwise a
	// caller could guess a masked value by trying.
	always := b.Masked && b.Exists && !p.equalsShown()
	if !b.Exists || always || !bytes.Equal(raw, b.Content) {
		if err := p.checkOverwrite(); err != nil {
			return nil, err
		}
	}
	after := fileedit.Whole(raw)
	after.AlwaysWrite = always
	if p.target.encoding != textfile.UTF8 {
		after.Encoding = p.target.encoding
	}
	after.Guessed, after.EncodingNamed = p.target.guessed, p.encodingNamed || p.Encoding != ""
	after.Executable = !b.Exists && bytes.HasPrefix(raw, []byte("#!"))
	return after, context.Cause(ctx)
}
