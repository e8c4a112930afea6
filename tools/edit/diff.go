package main

import (
	"bytes"
	"context"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// fitDiff returns a diff that fits the budget together with a header of
// headerSize bytes. diff makes it with the given options. fitDiff shortens
// lines only if the budget requires it, and reduces the context of a small diff
// until the answer is short. The diff omits the file's name, which the header
// has.
func fitDiff(ctx context.Context, diff func(textdiff.Options) textdiff.Diff, o textdiff.Options, budget, headerSize int) textdiff.Diff {
	o.MaxLines, o.MaxLineBytes, o.WindowChars = maxDiffLines, maxFullLine, longLineWindow
	o.Stopped = func() bool { return ctx.Err() != nil }
	budget -= headerSize
	maxText := max(budget-headerReserve, budget/2)
	d := diff(o)
	for o.Context = 2; o.Context > 0 && headerSize+len(d.Text) > shortAnswer && len(d.Text) <= longAnswer; o.Context-- {
		d = diff(o)
	}
	o.Context = 0
	for len(d.Text) > maxText && o.MaxLineBytes > 100 {
		o.MaxLineBytes = max(min(o.MaxLineBytes/2, maxText/maxDiffLines), 100)
		o.WindowChars = min(o.WindowChars, o.MaxLineBytes)
		d = diff(o)
	}
	for len(d.Text) > maxText && o.MaxLines > 1 {
		o.MaxLines /= 2
		d = diff(o)
	}
	return d
}

// textForDiff returns a file's text for a diff: without a byte order mark, with
// line feeds, and with masked values if maskValues is set.
func textForDiff(f *splice.File, maskValues bool) []byte {
	text := f.Text[f.BodyStart:]
	if maskValues {
		text = secret.Mask(text)
	}
	if f.EOL != '\n' {
		text = bytes.ReplaceAll(text, []byte{f.EOL}, []byte{'\n'})
	}
	return text
}
