package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// checkEncodingGuess returns BAD_ENCODING for a change that is right only in
// the encoding that was guessed or given: if the guess is wrong, or the file is
// valid UTF-8, other programs could not read the result.
func (c *change) checkEncodingGuess(b *fileedit.Before) error {
	if c.encodingNamed && c.file.Encoding != textfile.UTF8 && b.Exists && b.Index.Encoding == textfile.UTF8 && b.Index.Invalid == 0 && !textfile.IsASCII(b.Content) &&
		slices.ContainsFunc(c.result.Changes, func(change textdiff.Change) bool { return !textfile.IsASCII([]byte(change.New)) }) {
		return toolerr.New(toolerr.BadEncoding, "the file is valid utf-8; new text in %s would make it invalid: leave encoding out", c.file.Encoding)
	}
	if !c.file.Guessed {
		return nil
	}
	guess := textfile.NewGuess(b.Content, c.file.Encoding)
	changes := c.result.RawChanges()
	for i, change := range changes {
		if !guess.EditIsUnambiguous(change.Start, change.End, c.result.Changes[i].New) {
			return toolerr.New(toolerr.BadEncoding, "the file's encoding is a guess (it may be %s), and this edit depends on it: view the file with encoding=… to find the right one, then send the edit with that encoding", guess).
				With("candidates", append([]textfile.Encoding{guess.Encoding}, guess.Rivals...))
		}
	}
	return nil
}

// checkStaysText returns BINARY_FILE for a change after which the file would
// not be text, because of new or remaining bytes. It warns of NUL characters in
// the new text, and if the file's encoding would be detected as another one.
func (c *change) checkStaysText(ctx context.Context, b *fileedit.Before) error {
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
	case c.encodingNamed && !controls && c.file.NUL == 0: // as the caller says
		return nil
	case format.Binary && controls:
		return toolerr.New(toolerr.BinaryFile, refused+"Look for control characters in new_string, for example a \\u0000 that should be \\\\u0000.", b.Shown)
	case format.Binary && c.file.NUL > 0:
		return toolerr.New(toolerr.BinaryFile, refused+"It has %s, from line %d on. Remove them first, with a separate edit or a command such as tr -d '\\000'.",
			b.Shown, textfmt.Count(c.file.NUL, "NUL character"), c.file.LineNumberer()(bytes.IndexByte(c.file.Text, 0)))
	case format.Binary:
		return toolerr.New(toolerr.BinaryFile, refused+"The result has too many bytes that are not valid %s: remove them first, with a command.", b.Shown, c.file.Encoding)
	case format.NUL > c.file.NUL:
		c.warnings = append(c.warnings, fmt.Sprintf("new_string has %s", textfmt.Count(format.NUL-c.file.NUL, "NUL character")))
	case format.Encoding != c.file.Encoding && format.Encoding != textfile.UTF8:
		c.warnings = append(c.warnings, fmt.Sprintf("the file is written as %s, but now looks like %s; give view the encoding", c.file.Encoding, format.Encoding))
	}
	return nil
}

// nonUTF8Encoding returns the encoding of the new content, or "" for UTF-8.
// Detection from the content might give another one.
func (c *change) nonUTF8Encoding() textfile.Encoding {
	if c.file.Encoding == textfile.UTF8 {
		return ""
	}
	return c.file.Encoding
}
