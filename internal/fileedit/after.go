package fileedit

import (
	"bytes"
	"io"
	"sort"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// After is the content that a file gets. It is not put together in memory
// unless it was given that way.
type After struct {
	// Executable gives a new file the execute bits.
	Executable bool
	// Always writes the content also where the file has it already: that it
	// was not written would tell what a masked file holds.
	Always bool
	// Encoding is how the text is written, where that is known and not UTF-8:
	// few bytes may look like another one. It is remembered.
	Encoding textfile.Encoding
	// Guessed says that Encoding is a guess, and Told that the client named it:
	// then it holds for the next change, too.
	Guessed, Told bool

	whole   bool
	changes []textdiff.Change // of the bytes before, unless whole
	pieces  []piece
}

// piece is a part of the content, at an offset of it.
type piece struct {
	at   int64
	data []byte
}

// Whole is content that is in memory.
func Whole(content []byte) *After {
	a := &After{whole: true}
	a.add(content)
	return a
}

// Splice is the bytes before with changes made, which are sorted and do not
// overlap. The new text is in the file's encoding.
func Splice(before []byte, changes []textdiff.Change) *After {
	a := &After{changes: changes, pieces: make([]piece, 0, 2*len(changes)+1)}
	at := 0
	var text []byte // of the change before: most are the same
	for _, c := range changes {
		a.add(before[at:c.Start])
		if string(text) != c.New {
			text = []byte(c.New)
		}
		a.add(text)
		at = c.End
	}
	a.add(before[at:])
	return a
}

func (a *After) add(data []byte) {
	if len(data) > 0 {
		a.pieces = append(a.pieces, piece{a.Size(), data})
	}
}

// Size returns how many bytes it has.
func (a *After) Size() int64 {
	if len(a.pieces) == 0 {
		return 0
	}
	last := a.pieces[len(a.pieces)-1]
	return last.at + int64(len(last.data))
}

// ReadAt reads a part of it.
func (a *After) ReadAt(p []byte, off int64) (n int, err error) {
	first := sort.Search(len(a.pieces), func(i int) bool { return a.pieces[i].at > off }) - 1
	for i := max(first, 0); i < len(a.pieces) && n < len(p); i++ {
		from := max(off-a.pieces[i].at, 0)
		if from < int64(len(a.pieces[i].data)) {
			n += copy(p[n:], a.pieces[i].data[from:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Slice returns a part of it that lies in one piece, else nil.
func (a *After) Slice(off int64, n int) []byte {
	i := sort.Search(len(a.pieces), func(i int) bool { return a.pieces[i].at > off }) - 1
	if i < 0 || off-a.pieces[i].at > int64(len(a.pieces[i].data)-n) {
		return nil
	}
	return a.pieces[i].data[off-a.pieces[i].at:][:n:n]
}

// same returns how many bytes at the beginning are known to be as before.
func (a *After) same() int64 {
	if a.whole || len(a.changes) == 0 {
		return 0
	}
	return int64(a.changes[0].Start)
}

// Bytes returns it in one piece: what was given, or a copy.
func (a *After) Bytes() []byte {
	if len(a.pieces) == 1 {
		return a.pieces[0].data
	}
	out := make([]byte, 0, a.Size())
	for _, p := range a.pieces {
		out = append(out, p.data...)
	}
	return out
}

func (a *After) write(w io.Writer) error {
	for _, p := range a.pieces {
		if _, err := w.Write(p.data); err != nil {
			return err
		}
	}
	return nil
}

// is reports whether it is the same as before. What was not changed is not
// looked at: it is the very same memory.
func (a *After) is(before []byte) bool {
	if a.Size() != int64(len(before)) {
		return false
	}
	for _, p := range a.pieces {
		if !bytes.Equal(p.data, before[p.at:p.at+int64(len(p.data))]) {
			return false
		}
	}
	return true
}

// change returns the journal's record.
func (a *After) change(b *Before, etag textfile.Etag) state.Change {
	if a.whole || !b.Exists {
		return state.NewChange("", b.Path, b.Content, a.Bytes())
	}
	c := state.Change{
		Path:   b.Path,
		Before: state.Version{Size: int64(len(b.Content)), Etag: b.Etag},
		After:  state.Version{Size: a.Size(), Etag: etag},
	}
	start, end := 0, len(b.Content)
	if n := len(a.changes); n > 0 {
		start, end = a.changes[0].Start, a.changes[n-1].End
	}
	c.Start, c.End, c.Removed = int64(start), int64(len(b.Content)-end), b.Content[start:end]
	return c
}
