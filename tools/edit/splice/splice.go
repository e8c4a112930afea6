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

// File is a text file in memory. Do not modify it.
type File struct {
	textfile.Format
	Raw       []byte
	Text      []byte // UTF-8: Raw itself, or decoded without the byte order mark
	BodyStart int    // offset in Text of the first byte after a byte order mark
	EOL       byte   // the byte that ends a line in Text: a line feed, or a carriage return if there are no line feeds

	decoded    *textfile.Decoded // nil for UTF-8
	lineCounts []int64           // number of lines that end before each multiple of stride; of a UTF-8 file, or nil
	stride     int
}

// Open detects the format of raw. It returns BINARY_FILE for a file that is not
// text.
func Open(ctx context.Context, raw []byte) (*File, error) {
	return OpenIndexed(ctx, raw, &textfile.Index{Format: textfile.Detect(raw)})
}

// OpenAs is Open for a file that was scanned: index has its format and, for
// large files, line positions.
func OpenIndexed(ctx context.Context, raw []byte, index *textfile.Index) (*File, error) {
	f := &File{Format: index.Format, Raw: raw, EOL: '\n'}
	if f.Binary {
		return nil, toolerr.New(toolerr.BinaryFile, "binary file, which cannot be edited as text")
	}
	if f.Ending == textfile.CR {
		f.EOL = '\r'
	}
	if f.Encoding == textfile.UTF8 {
		f.Text, f.BodyStart = raw, f.BOM
		f.lineCounts, f.stride = index.Starts, int(index.Stride)
		return f, nil
	}
	var err error
	if f.decoded, err = f.Encoding.DecodeMapped(ctx, raw[f.BOM:]); err != nil {
		return nil, err
	}
	f.Text = f.decoded.Text
	return f, nil
}

// Offset converts a position of Text to one of Raw; false inside a character.
func (f *File) RawOffset(textOffset int) (int, bool) {
	if f.decoded == nil {
		return textOffset, true
	}
	offset, ok := f.decoded.Offset(textOffset)
	return offset + f.BOM, ok
}
