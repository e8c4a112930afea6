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
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// File is a text file in memory. Do not modify it.
type File struct {
	textfile.Format
	Raw  []byte
	Text []byte // UTF-8: Raw itself, or decoded without the byte order mark
	Body int    // offset in Text of the first byte after a byte order mark
	EOL  byte   // the byte that ends a line in Text: a line feed, or a carriage return if there are no line feeds

	decoded *textfile.Decoded // nil for UTF-8
	starts  []int64           // number of lines that end before each multiple of stride; of a UTF-8 file, or nil
	stride  int
}

// Open detects the format of raw. It returns BINARY_FILE for a file that is not
// text.
func Open(ctx context.Context, raw []byte) (*File, error) {
	return OpenAs(ctx, raw, &textfile.Index{Format: textfile.Detect(raw)})
}

// OpenAs is Open for a file that was scanned: index has its format and, for
// large files, line positions.
func OpenAs(ctx context.Context, raw []byte, index *textfile.Index) (*File, error) {
	f := &File{Format: index.Format, Raw: raw, EOL: '\n'}
	if f.Binary {
		return nil, toolerr.New(toolerr.BinaryFile, "binary file, which cannot be edited as text")
	}
	if f.Ending == textfile.CR {
		f.EOL = '\r'
	}
	if f.Encoding == textfile.UTF8 {
		f.Text, f.Body = raw, f.BOM
		f.starts, f.stride = index.Starts, int(index.Stride)
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
func (f *File) Offset(at int) (int, bool) {
	if f.decoded == nil {
		return at, true
	}
	found, ok := f.decoded.Offset(at)
	return found + f.BOM, ok
}

// LineStart returns the start of the line that contains a position of Text.
func (f *File) LineStart(at int) int {
	return max(f.Body, bytes.LastIndexByte(f.Text[:at], f.EOL)+1)
}

// LineEnd returns the end of that line, after its ending.
func (f *File) LineEnd(at int) int {
	if n := bytes.IndexByte(f.Text[at:], f.EOL); n >= 0 {
		return at + n + 1
	}
	return len(f.Text)
}

// BlanksEnd returns the end of the blanks at a position of Text if they end the
// line's content; otherwise the position.
func (f *File) BlanksEnd(at int) int {
	rest := f.Content(f.Text[at:f.LineEnd(at)])
	if len(bytes.TrimSpace(rest)) > 0 {
		return at
	}
	return at + len(rest)
}

// AtLineEnd reports whether the line's content ends at a position of Text.
func (f *File) AtLineEnd(at int) bool { return len(f.Content(f.Text[at:f.LineEnd(at)])) == 0 }

// Content returns a line without its ending.
func (f *File) Content(line []byte) []byte {
	n := len(line)
	if n == 0 || line[n-1] != f.EOL {
		return line
	}
	if n--; f.EOL == '\n' && n > 0 && line[n-1] == '\r' {
		n--
	}
	return line[:n]
}

// Numbers returns a function that returns the line number (1-based) of a
// position of Text. Positions must be ascending.
func (f *File) Numbers() func(at int) int {
	last, line := f.Body, 1
	return func(at int) int {
		if f.stride > 0 && len(f.starts) > 0 {
			if i := min(at/f.stride, len(f.starts)-1); i*f.stride > last {
				last, line = i*f.stride, int(f.starts[i])+1
			}
		}
		if at > last {
			line += bytes.Count(f.Text[last:at], []byte{f.EOL})
			last = at
		}
		return line
	}
}

// Lines returns the number of lines, including a last one without an ending.
func (f *File) Lines() int {
	n := bytes.Count(f.Text[f.Body:], []byte{f.EOL})
	if len(f.Text) > f.Body && f.Text[len(f.Text)-1] != f.EOL {
		n++
	}
	return n
}

// Result is a changed file that is not yet assembled.
type Result struct {
	Changes []textdiff.Change // to the text, sorted

	file *File
	raw  []textdiff.Change // the same changes for the bytes
}

// Apply returns the file with changes of its text, which must be sorted and
// must not overlap. It returns BAD_ENCODING for new text that the file's
// encoding cannot represent, or that would not read back unchanged.
func (f *File) Apply(ctx context.Context, changes []textdiff.Change) (*Result, error) {
	r := &Result{Changes: changes, file: f, raw: changes}
	at := f.Body
	for _, c := range changes {
		if c.Start < at || c.End < c.Start || c.End > len(f.Text) {
			return nil, toolerr.New(toolerr.Internal, "changes are out of order at byte %d", c.Start)
		}
		at = c.End
	}
	if f.decoded == nil {
		for i, c := range changes {
			if (i == 0 || c.New != changes[i-1].New) && strings.ToValidUTF8(c.New, "") != c.New {
				return nil, toolerr.New(toolerr.BadEncoding, "the new text is not valid UTF-8")
			}
		}
		return r, nil
	}
	looks := cancelcheck.New(ctx)
	if err := r.encode(looks); err != nil {
		return nil, err
	}
	return r, r.check(looks)
}

// perChange is the cost of work on a change, in bytes scanned.
const perChange = 512

// encode converts the changes of the text to changes of the bytes.
func (r *Result) encode(looks *cancelcheck.Checker) error {
	f := r.file
	r.raw = make([]textdiff.Change, 0, len(r.Changes))
	offset := f.decoded.Offsets()
	last, encoded := "", ""
	for _, c := range r.Changes {
		if looks.Stopped(perChange) {
			return looks.Err()
		}
		start, ok1 := offset(c.Start)
		end, ok2 := offset(c.End)
		if !ok1 || !ok2 {
			return toolerr.New(toolerr.BadEncoding, "the edit would split a %s character", f.Encoding)
		}
		if c.New != last {
			raw, err := f.Encoding.Encode(c.New)
			switch {
			case err != nil && f.Guessed:
				return toolerr.New(toolerr.CodeOf(err), "%w, which is a guess: view the file with encoding=… to find the right one, then send the edit with that encoding", err)
			case err != nil:
				return toolerr.New(toolerr.CodeOf(err), "%w, the file's encoding: use characters that it has, or convert the file first", err)
			}
			last, encoded = c.New, string(raw)
		}
		change := textdiff.Change{Start: start + f.BOM, End: end + f.BOM}
		if c.New != "" {
			change.New = encoded
		}
		r.raw = append(r.raw, change)
	}
	return nil
}

// around is the amount of text next to a change that is read back with it, in
// bytes.
const around = 32

// check reads back the new text with its surroundings: after half a character,
// as in a damaged file, it would become part of that character.
func (r *Result) check(looks *cancelcheck.Checker) error {
	f := r.file
	offset := f.decoded.Offsets()
	for i := 0; i < len(r.Changes); {
		n := i + 1
		for n < len(r.Changes) && r.Changes[n].Start-r.Changes[n-1].End < 2*around {
			n++
		}
		start, end := r.Changes[i].Start, r.Changes[n-1].End
		if looks.Stopped(end - start + perChange) {
			return looks.Err()
		}
		from, rawFrom := f.boundary(offset, start, -1)
		to, rawTo := f.boundary(offset, end, +1)
		want := patched(f.Text, r.Changes[i:n], from, to)
		got := patched(f.Raw, r.raw[i:n], rawFrom, rawTo)
		if f.Encoding.Decode(got) != string(want) {
			return toolerr.New(toolerr.BadEncoding, "the bytes next to the change are not valid %s, so the new text would not read back unchanged; edit a place that does not touch them", f.Encoding)
		}
		i = n
	}
	return nil
}

// boundary returns a position between characters, at least around bytes from at
// in a direction, in the text and in the bytes.
func (f *File) boundary(offset func(int) (int, bool), at, direction int) (text, raw int) {
	for to := at + direction*around; ; to += direction {
		to = min(max(to, 0), len(f.Text))
		if raw, ok := offset(to); ok {
			return to, raw + f.BOM
		}
	}
}

// patched returns a range of data with changes applied.
func patched(data []byte, changes []textdiff.Change, from, to int) []byte {
	var out []byte
	for _, c := range changes {
		out = append(append(out, data[from:c.Start]...), c.New...)
		from = c.End
	}
	return append(out, data[from:to]...)
}

// Raw returns the changes of the file's bytes, for writing.
func (r *Result) Raw() []textdiff.Change { return r.raw }

// Size returns the size of the changed file in bytes.
func (r *Result) Size() int {
	size := len(r.file.Raw)
	for _, c := range r.raw {
		size += len(c.New) - (c.End - c.Start)
	}
	return size
}

// Bytes returns the changed file in new memory.
func (r *Result) Bytes() []byte {
	out := bytes.NewBuffer(make([]byte, 0, r.Size()))
	_, _ = r.WriteTo(out) // a Buffer's Write never fails
	return out.Bytes()
}

// WriteTo writes the changed file without assembling it in memory.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	var total int64
	write := func(b []byte) error {
		if len(b) == 0 {
			return nil
		}
		n, err := w.Write(b)
		total += int64(n)
		return err
	}
	at := 0
	for _, c := range r.raw {
		if err := write(r.file.Raw[at:c.Start]); err != nil {
			return total, err
		}
		if err := write([]byte(c.New)); err != nil {
			return total, err
		}
		at = c.End
	}
	return total, write(r.file.Raw[at:])
}

// Diff returns the unified diff of the text. For a UTF-8 file it applies to the
// bytes. Lines that end in lone carriage returns are shown as lines.
func (r *Result) Diff(o textdiff.Options) textdiff.Diff {
	if r.file.EOL == '\n' {
		return textdiff.Unified(r.file.Text, r.Changes, o)
	}
	lines := make([]textdiff.Change, len(r.Changes))
	for i, c := range r.Changes {
		c.New = strings.ReplaceAll(c.New, "\r", "\n")
		lines[i] = c
	}
	return textdiff.Unified(bytes.ReplaceAll(r.file.Text, []byte{'\r'}, []byte{'\n'}), lines, o)
}
