package splice

import (
	"context"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// Result is a file with changes, which Bytes and WriteTo assemble.
type Result struct {
	Changes []textdiff.Change // to the text, sorted

	file       *File
	rawChanges []textdiff.Change // the same changes, to the bytes
}

// Apply returns the file with changes of its text, which must be sorted and
// must not overlap. The file itself does not change. Apply returns BAD_ENCODING
// for new text that the file's encoding cannot represent, or that would not
// read back unchanged, and the cause if ctx ends.
func (f *File) Apply(ctx context.Context, changes []textdiff.Change) (*Result, error) {
	r := &Result{Changes: changes, file: f, rawChanges: changes}
	at := f.BodyStart
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
	checker := cancelcheck.New(ctx)
	if err := r.encodeChanges(checker); err != nil {
		return nil, err
	}
	return r, r.checkReadsBack(checker)
}

// changeCost is the cost of work on a change, in bytes scanned.
const changeCost = 512

// encodeChanges sets rawChanges: the changes of the text as changes of the
// bytes. It returns BAD_ENCODING if the encoding cannot represent new text, or
// if a change begins or ends inside a character.
func (r *Result) encodeChanges(checker *cancelcheck.Checker) error {
	f := r.file
	r.rawChanges = make([]textdiff.Change, 0, len(r.Changes))
	offset := f.decoded.RawOffsets()
	last, encoded := "", ""
	for _, c := range r.Changes {
		if checker.Stopped(changeCost) {
			return checker.Err()
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
		r.rawChanges = append(r.rawChanges, change)
	}
	return nil
}

// readBackMargin is the amount of unchanged text on each side of a change that
// is read back with it, in bytes.
const readBackMargin = 32

// checkReadsBack decodes the changed bytes with their surroundings, and returns
// BAD_ENCODING if they differ from the changed text: after half a character, as
// in a damaged file, new text would become part of that character.
func (r *Result) checkReadsBack(checker *cancelcheck.Checker) error {
	f := r.file
	offset := f.decoded.RawOffsets()
	for i := 0; i < len(r.Changes); {
		n := i + 1
		for n < len(r.Changes) && r.Changes[n].Start-r.Changes[n-1].End < 2*readBackMargin {
			n++
		}
		start, end := r.Changes[i].Start, r.Changes[n-1].End
		if checker.Stopped(end - start + changeCost) {
			return checker.Err()
		}
		from, rawFrom := f.distantBoundary(offset, start, -1)
		to, rawTo := f.distantBoundary(offset, end, +1)
		want := applyChanges(f.Text, r.Changes[i:n], from, to)
		got := applyChanges(f.Raw, r.rawChanges[i:n], rawFrom, rawTo)
		if f.Encoding.Decode(got) != string(want) {
			return toolerr.New(toolerr.BadEncoding, "the bytes next to the change are not valid %s, so the new text would not read back unchanged; edit a place that does not touch them", f.Encoding)
		}
		i = n
	}
	return nil
}

// distantBoundary returns the offsets, in Text and in Raw, of a boundary
// between characters that is at least readBackMargin bytes before at (direction
// -1) or after at (direction 1), or the start or end of the file. offset
// converts offsets in Text to Raw, without the byte order mark.
func (f *File) distantBoundary(offset func(int) (int, bool), at, direction int) (text, raw int) {
	for to := at + direction*readBackMargin; ; to += direction {
		to = min(max(to, 0), len(f.Text))
		if raw, ok := offset(to); ok {
			return to, raw + f.BOM
		}
	}
}

// applyChanges returns data[from:to] with changes, whose offsets are in data.
func applyChanges(data []byte, changes []textdiff.Change, from, to int) []byte {
	var out []byte
	for _, c := range changes {
		out = append(append(out, data[from:c.Start]...), c.New...)
		from = c.End
	}
	return append(out, data[from:to]...)
}
