// Package splice changes ranges of a file's text and leaves every byte
// outside of them as it is: line endings, byte order mark, bytes that are not
// valid in the encoding, a missing final newline.
//
// Open gives a file in memory its text as UTF-8. A UTF-8 file is its own text
// and nothing is copied; another encoding is decoded, with the way back to
// the bytes. Apply takes changes to that text and encodes no more than what
// is new:
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

	"github.com/toolroom-mcp/toolroom/pkg/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/pace"
)

// File is a text file in memory. It is not to be changed.
type File struct {
	textfile.Format
	Raw  []byte
	Text []byte // UTF-8: Raw itself, else decoded and without the byte order mark
	Body int    // where in Text the text begins, behind a byte order mark
	EOL  byte   // the byte that ends a line in Text: a line feed, or a carriage return where there is none

	decoded *textfile.Decoded // nil for UTF-8
	starts  []int64           // how many lines end before each multiple of stride; of a UTF-8 file, or nil
	stride  int
}

// Open finds out how raw is written. A file that is not text is BINARY_FILE.
func Open(ctx context.Context, raw []byte) (*File, error) {
	return OpenAs(ctx, raw, &textfile.Index{Format: textfile.Detect(raw)})
}

// OpenAs is Open where raw was scanned: index says how it is written and, for
// large files, where lines are.
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

// Offset returns where in Raw a place of Text is, unless it is inside a
// character.
func (f *File) Offset(at int) (int, bool) {
	if f.decoded == nil {
		return at, true
	}
	found, ok := f.decoded.Offset(at)
	return found + f.BOM, ok
}

// LineStart returns where the line begins that a place of Text is in.
func (f *File) LineStart(at int) int {
	return max(f.Body, bytes.LastIndexByte(f.Text[:at], f.EOL)+1)
}

// LineEnd returns where that line ends, behind its ending.
func (f *File) LineEnd(at int) int {
	if n := bytes.IndexByte(f.Text[at:], f.EOL); n >= 0 {
		return at + n + 1
	}
	return len(f.Text)
}

// BlanksEnd returns where blanks at a position of Text end if the line's
// content ends with them, else the position.
func (f *File) BlanksEnd(at int) int {
	rest := f.Content(f.Text[at:f.LineEnd(at)])
	if len(bytes.TrimSpace(rest)) > 0 {
		return at
	}
	return at + len(rest)
}

// AtLineEnd reports whether a line's content ends at a position of Text.
func (f *File) AtLineEnd(at int) bool { return len(f.Content(f.Text[at:f.LineEnd(at)])) == 0 }

// Content returns a line without its ending, given with it.
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

// Numbers returns the numbers (1-based) of the lines that places of Text are
// in, asked for in ascending order.
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

// Lines returns how many lines the text has; a last one without an ending
// counts.
func (f *File) Lines() int {
	n := bytes.Count(f.Text[f.Body:], []byte{f.EOL})
	if len(f.Text) > f.Body && f.Text[len(f.Text)-1] != f.EOL {
		n++
	}
	return n
}

// Result is a changed file, not put together yet.
type Result struct {
	Changes []textdiff.Change // to the text, sorted

	file *File
	raw  []textdiff.Change // the same to the bytes
}

// Apply returns the file with changes made to its text, which are sorted and
// do not overlap. New text that the file's encoding does not have, or that
// would not read back as it is, is BAD_ENCODING.
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
	looks := pace.Of(ctx)
	if err := r.encode(looks); err != nil {
		return nil, err
	}
	return r, r.check(looks)
}

// perChange is how many bytes looked at are worth the work on a change.
const perChange = 512

// encode makes changes to the bytes of the changes to the text.
func (r *Result) encode(looks *pace.Pace) error {
	f := r.file
	r.raw = make([]textdiff.Change, 0, len(r.Changes))
	offset := f.decoded.Offsets()
	last, encoded := "", ""
	for _, c := range r.Changes {
		if looks.Over(perChange) {
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

// around is how much text beside a change is read back with it.
const around = 32

// check reads back what is new, with what is beside it: behind half a
// character, as in a damaged file, it would become a part of that.
func (r *Result) check(looks *pace.Pace) error {
	f := r.file
	offset := f.decoded.Offsets()
	for i := 0; i < len(r.Changes); {
		n := i + 1
		for n < len(r.Changes) && r.Changes[n].Start-r.Changes[n-1].End < 2*around {
			n++
		}
		start, end := r.Changes[i].Start, r.Changes[n-1].End
		if looks.Over(end - start + perChange) {
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

// boundary returns a place between characters, around bytes from at in a
// direction.
func (f *File) boundary(offset func(int) (int, bool), at, direction int) (text, raw int) {
	for to := at + direction*around; ; to += direction {
		to = min(max(to, 0), len(f.Text))
		if raw, ok := offset(to); ok {
			return to, raw + f.BOM
		}
	}
}

// patched returns the part of data from one place to another with changes
// made.
func patched(data []byte, changes []textdiff.Change, from, to int) []byte {
	var out []byte
	for _, c := range changes {
		out = append(append(out, data[from:c.Start]...), c.New...)
		from = c.End
	}
	return append(out, data[from:to]...)
}

// Raw returns the changes to the file's bytes, for who writes them.
func (r *Result) Raw() []textdiff.Change { return r.raw }

// Size returns how many bytes the changed file has.
func (r *Result) Size() int {
	size := len(r.file.Raw)
	for _, c := range r.raw {
		size += len(c.New) - (c.End - c.Start)
	}
	return size
}

// Bytes returns the changed file, the one copy that is made of it.
func (r *Result) Bytes() []byte {
	out := bytes.NewBuffer(make([]byte, 0, r.Size()))
	_, _ = r.WriteTo(out) // a Buffer's Write never fails
	return out.Bytes()
}

// WriteTo writes the changed file without putting it together in memory.
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

// Diff returns the unified diff of the text. That of a UTF-8 file fits its
// bytes. Lines that end in carriage returns alone are shown as lines.
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
