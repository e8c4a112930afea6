package main

import (
	"bytes"
	"context"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// readOldContent sets oldFormat, oldText and oldLines from the existing file,
// and encodingNamed.
func (p *plan) readOldContent(ctx context.Context) error {
	raw := p.before.Content
	p.oldFormat = textfile.Detect(raw)
	if p.before.IsSeenVersion() && !p.oldFormat.Binary && p.before.Seen.Index.Encoding != "" {
		p.oldFormat = p.before.Seen.Index.Format // as it was written, even if detection would differ
	}
	named := textfile.Encoding("")
	if namedBefore := p.before.IsSeenVersion() && p.before.Seen.NamedEncoding != ""; !namedBefore && p.Encoding != string(textfile.UTF8) {
		named = textfile.Encoding(p.Encoding)
	}
	if p.oldFormat.Guessed || p.oldFormat.Binary || named == "" { // otherwise the call converts the file
		index, encodingNamed, err := p.before.IndexIn(ctx, named)
		if err != nil {
			return err
		}
		if p.encodingNamed = encodingNamed; encodingNamed {
			p.oldFormat = index.Format
		}
	}
	p.oldText = raw[p.oldFormat.BOM:]
	if p.oldFormat.Encoding != textfile.UTF8 && !p.oldFormat.Binary {
		p.oldText = []byte(p.oldFormat.Encoding.Decode(p.oldText))
	}
	if len(p.oldText) == 0 {
		return nil
	}
	ending := []byte("\n")
	if p.oldFormat.Ending == textfile.CR {
		ending = []byte("\r")
	}
	p.oldLines = int64(bytes.Count(p.oldText, ending))
	if !bytes.HasSuffix(p.oldText, ending) {
		p.oldLines++
	}
	return nil
}
