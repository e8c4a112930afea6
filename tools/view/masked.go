package main

import (
	"bytes"
	"context"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxMasked bounds a file with masked values, which must be read as a whole, in
// bytes.
const maxMasked = 4 << 20

// viewMasked shows a settings file with masked values. It returns TOO_LARGE for a file
// that is too large to be masked.
func (f *viewedFile) viewMasked(ctx context.Context) (*answer, error) {
	if f.Stat.Size > maxMasked {
		return nil, toolerr.New(toolerr.TooLarge, "%s has %d bytes; masking its values is limited to %d", f.shownPath, f.Stat.Size, maxMasked)
	}
	raw, err := readRange(f, 0, f.Stat.Size)
	if err != nil {
		return nil, err
	}
	// Bytes are masked before decoding, since programs parse such files as
	// bytes: in another encoding, the byte that ends a value might be part
	// of a character.
	encoding, hidden := f.index.Encoding, raw[f.index.BOM:]
	if encoding.IsUTF16() {
		hidden = secret.Mask([]byte(encoding.Decode(hidden)))
	} else {
		if f.encoding != "" && !f.encoding.IsUTF16() {
			encoding = f.encoding
		}
		hidden = []byte(encoding.Decode(secret.Mask(hidden)))
	}
	if f.index.Ending == textfile.CR {
		hidden = bytes.ReplaceAll(hidden, []byte{'\r'}, []byte{'\n'})
	}
	got, err := f.viewGenerated(ctx, bytes.NewReader(hidden), "", f.index.Format.String())
	if err != nil {
		return nil, err
	}
	m := f.newMeta("text")
	m.Lines, m.Encoding, m.Ending = f.index.Lines, string(encoding), string(f.index.Ending)
	got.meta.completeFrom(m)
	return got, nil
}
