package splice

import (
	"bytes"
	"io"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// RawChanges returns the changes of the file's bytes, sorted.
func (r *Result) RawChanges() []textdiff.Change { return r.rawChanges }

// Size returns the size of the changed file, in bytes.
func (r *Result) Size() int {
	size := len(r.file.Raw)
	for _, c := range r.rawChanges {
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

// WriteTo writes the changed file without assembling it in memory. It returns
// the number of bytes written and the first error of w.
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
	for _, c := range r.rawChanges {
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

// Diff returns the unified diff of the text. Lines that end in lone carriage
// returns are shown as lines. For a UTF-8 file without such lines, the diff
// applies to the file's bytes.
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
