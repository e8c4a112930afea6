package fileedit

import (
	"bytes"
	"io"
	"sort"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// After is the new content of a file, with the way to write it. It consists of
// pieces, which are joined in memory only on demand.
type After struct {
	// Executable sets the execute bits of a new file.
	Executable bool
	// Always writes the content even if the file already has it: skipping the
	// write would reveal that a masked file has this content.
	AlwaysWrite bool
	// Encoding is the text's encoding, if it is known and not UTF-8. It is
	// remembered, since a few bytes may look like another encoding.
	Encoding textfile.Encoding
	// Guessed reports that Encoding is a guess. Told reports that the client
	// named it: then the next change uses it, too.
	Guessed, EncodingNamed bool

	whole   bool
	changes []textdiff.Change // relative to the previous content, unless whole
	pieces  []piece
}

// piece is a part of the content, at offset at.
type piece struct {
	offset int64
	data   []byte
}

// Whole returns content that is in memory. It keeps a reference to content.
func Whole(content []byte) *After {
	a := &After{whole: true}
	a.addPiece(content)
	return a
}

// Splice returns the content before with changes applied, which must be sorted
// and must not overlap. The new text must have the file's encoding.
func Splice(before []byte, changes []textdiff.Change) *After {
	a := &After{changes: changes, pieces: make([]piece, 0, 2*len(changes)+1)}
	at := 0
	var text []byte // of the previous change: most changes have the same text
	for _, c := range changes {
		a.addPiece(before[at:c.Start])
		if string(text) != c.New {
			text = []byte(c.New)
		}
		a.addPiece(text)
		at = c.End
	}
	a.addPiece(before[at:])
	return a
}

func (a *After) addPiece(data []byte) {
	if len(data) > 0 {
		a.pieces = append(a.pieces, piece{a.Size(), data})
	}
}

// Size returns the size of the content in bytes.
func (a *After) Size() int64 {
	if len(a.pieces) == 0 {
		return 0
	}
	last := a.pieces[len(a.pieces)-1]
	return last.offset + int64(len(last.data))
}

// ReadAt implements io.ReaderAt on the content.
func (a *After) ReadAt(p []byte, off int64) (n int, err error) {
	first := sort.Search(len(a.pieces), func(i int) bool { return a.pieces[i].offset > off }) - 1
	for i := max(first, 0); i < len(a.pieces) && n < len(p); i++ {
		from := max(off-a.pieces[i].offset, 0)
		if from < int64(len(a.pieces[i].data)) {
			n += copy(p[n:], a.pieces[i].data[from:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Slice returns n bytes of the content at off if they are in one piece, and nil
// otherwise.
func (a *After) Slice(off int64, n int) []byte {
	i := sort.Search(len(a.pieces), func(i int) bool { return a.pieces[i].offset > off }) - 1
	if i < 0 || off-a.pieces[i].offset > int64(len(a.pieces[i].data)-n) {
		return nil
	}
	return a.pieces[i].data[off-a.pieces[i].offset:][:n:n]
}

// unchangedPrefix returns the number of leading bytes that are known to be unchanged.
func (a *After) unchangedPrefix() int64 {
	if a.whole || len(a.changes) == 0 {
		return 0
	}
	return int64(a.changes[0].Start)
}

// Bytes returns the whole content: the given slice, or a copy.
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

func (a *After) writeTo(w io.Writer) error {
	for _, p := range a.pieces {
		if _, err := w.Write(p.data); err != nil {
			return err
		}
	}
	return nil
}

// equals reports whether the content equals before. Unchanged parts are not
// compared: they share before's memory.
func (a *After) equals(before []byte) bool {
	if a.Size() != int64(len(before)) {
		return false
	}
	for _, p := range a.pieces {
		if !bytes.Equal(p.data, before[p.offset:p.offset+int64(len(p.data))]) {
			return false
		}
	}
	return true
}

// journalChange returns the change as a journal record.
func (a *After) journalChange(b *Before, etag textfile.Etag) state.Change {
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
