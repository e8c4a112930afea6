package splice

import (
	"context"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
)

// Result is a changed file that is not yet assembled.
type Result struct {
	Changes []textdiff.Change // to the text, sorted

	file       *File
	rawChanges []textdiff.Change // the same changes for the bytes
}

// Apply returns the file with changes of its text, which must be sorted and
// must not overlap. It returns BAD_ENCODING for new text that the file's
// encoding cannot represent, or that would not read back unchanged.
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

// perChange is the cost of work on a change, in bytes scanned.
const changeCost = 512

// encode converts the changes of the text to changes of the bytes.
func (r *Result) encodeChanges(checker *cancelcheck.Checker) error {
	f := r.file
	r.rawChanges = make([]textdiff.Change, 0, len(r.Changes))
	offset := f.decoded.Offsets()
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

// around is the amount of text next to a change that is read back with it, in
// bytes.
const readBackMargin = 32

// check reads back the new text with its surroundings: after half a character,
// as in a damaged file, it would become part of that character.
func (r *Result) checkReadsBack(checker *cancelcheck.Checker) error {
	f := r.file
	offset := f.decoded.Offsets()
	for i := 0; i < len(r.Changes); {
		n := i + 1
		for n < len(r.Changes) && r.Changes[n].Start-r.Changes[n-1].End < 2*readBackMargin {
			n++
		}
		start, end := r.Changes[i].Start, r.Changes[n-1].End
		if checker.Stopped(end - start + changeCost) {
			return checker.Err()
		}
		from, rawFrom := f.characterBoundary(offset, start, -1)
		to, rawTo := f.characterBoundary(offset, end, +1)
		want := applyChanges(f.Text, r.Changes[i:n], from, to)
		got := applyChanges(f.Raw, r.rawChanges[i:n], rawFrom, rawTo)
		if f.Encoding.Decode(got) != string(want) {
			return toolerr.New(toolerr.BadEncoding, "the bytes next to the change are not valid %s, so the new text would not read back unchanged; edit a place that does not touch them", f.Encoding)
		}
		i = n
	}
	return nil
}

// boundary returns a position between characters, at least around bytes from at
// in a direction, in the text and in the bytes.
func (f *File) characterBoundary(offset func(int) (int, bool), at, direction int) (text, raw int) {
	for to := at + direction*readBackMargin; ; to += direction {
		to = min(max(to, 0), len(f.Text))
		if raw, ok := offset(to); ok {
			return to, raw + f.BOM
		}
	}
}

// patched returns a range of data with changes applied.
func applyChanges(data []byte, changes []textdiff.Change, from, to int) []byte {
	var out []byte
	for _, c := range changes {
		out = append(append(out, data[from:c.Start]...), c.New...)
		from = c.End
	}
	return append(out, data[from:to]...)
}
