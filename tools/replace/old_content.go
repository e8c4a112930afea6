package main

import (
	"bytes"
	"context"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// readOld detects the format of the existing file and decodes it.
func (p *plan) readOld(ctx context.Context) error {
	raw := p.before.Content
	p.old = textfile.Detect(raw)
	if p.before.Fresh() && !p.old.Binary && p.before.Seen.Index.Encoding != "" {
		p.old = p.before.Seen.Index.Format // as it was written, even if detection would differ
	}
	named := textfile.Encoding("")
	if toldBefore := p.before.Fresh() && p.before.Seen.NamedEncoding != ""; !toldBefore && p.Encoding != string(textfile.UTF8) {
		named = textfile.Encoding(p.Encoding)
	}
	if p.old.Guessed || p.old.Binary || named == "" { // otherwise the call converts the file
		index, told, err := p.before.Read(ctx, named)
		if err != nil {
			return err
		}
		if p.told = told; told {
			p.old = index.Format
		}
	}
	p.oldText = raw[p.old.BOM:]
	if p.old.Encoding != textfile.UTF8 && !p.old.Binary {
		p.oldText = []byte(p.old.Encoding.Decode(p.oldText))
	}
	if len(p.oldText) == 0 {
		return nil
	}
	ending := []byte("\n")
	if p.old.Ending == textfile.CR {
		ending = []byte("\r")
	}
	p.oldLines = int64(bytes.Count(p.oldText, ending))
	if !bytes.HasSuffix(p.oldText, ending) {
		p.oldLines++
	}
	return nil
}
