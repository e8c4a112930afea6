// Package splice changes ranges of a file's text and keeps every byte outside
// of them: line endings, byte order mark, bytes that are invalid in the
// encoding, a missing final newline.
//
// Open decodes a file in memory to UTF-8. A UTF-8 file is used without a copy;
// another encoding is decoded with a mapping back to the bytes. Apply takes
// changes of that text and encodes only the new text:
//
//	f, err := splice.Open(ctx, raw)
//	result, err := f.Apply(ctx, []textdiff.Change{{Start: 7, End: 9, New: "é"}})
//	_, err = result.WriteTo(file)
package splice

import (
	"context"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// File is a text file in memory. It must not be modified. Its methods are safe
// for concurrent use.
type File struct {
	textfile.Format
	Raw       []byte // the file's bytes, with any byte order mark
	Text      []byte // in UTF-8: Raw itself, or the decoded file without the byte order mark
	BodyStart int    // offset in Text of the first byte after a byte order mark
	EOL       byte   // the byte that ends a line in Text: '\n', or '\r' if the file has no line feeds

	decoded    *textfile.Decoded // maps offsets in Text to Raw; nil for UTF-8
	lineCounts []int64           // number of lines that end before each multiple of stride in Text; nil if unknown
	stride     int               // in bytes
}

// Open detects the format of raw and decodes it. It returns BINARY_FILE if raw
// is not text, and the cause if ctx ends. The File refers to raw, which must
// not change.
func Open(ctx context.Context, raw []byte) (*File, error) {
	return OpenIndexed(ctx, raw, &textfile.Index{Format: textfile.Detect(raw)})
}

// OpenIndexed is Open for a file that was scanned already. index gives the
// format and, for large UTF-8 files, the line numbers. It returns BINARY_FILE for a
// binary file.
func OpenIndexed(ctx context.Context, raw []byte, index *textfile.Index) (*File, error) {
	f := &File{Format: index.Format, Raw: raw, EOL: '\n'}
	if f.Binary {
		return nil, toolerr.New(toolerr.BinaryFile, "binary file, which cannot be edited as text: use a command, or replace the whole file")
	}
	if f.Ending == textfile.CR {
		f.EOL = '\r'
	}
	if f.Encoding == textfile.UTF8 {
		f.Text, f.BodyStart = raw, f.BOM
		f.lineCounts, f.stride = index.LinesBefore, int(index.Stride)
		return f, nil
	}
	var err error
	if f.decoded, err = f.Encoding.DecodeMapped(ctx, raw[f.BOM:]); err != nil {
		return nil, err
	}
	f.Text = f.decoded.Text
	return f, nil
}

// RawOffset converts an offset in Text to an offset in Raw. ok is false if the
// offset is inside a character.
func (f *File) RawOffset(textOffset int) (offset int, ok bool) {
	if f.decoded == nil {
		return textOffset, true
	}
	offset, ok = f.decoded.RawOffset(textOffset)
	return offset + f.BOM, ok
}
