package fileedit

import (
	"bytes"
	"io"
	"sort"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// After is the new content of a file, with instructions for writing it. The
// content is a list of pieces, which are joined in memory only on demand.
type After struct {
	// Executable sets the execute bits of a new file.
	Executable bool
	// AlwaysWrite writes the content even if the file already has it: skipping
	// the write would reveal that a masked file has this content.
	AlwaysWrite bool
	// Encoding is the text's encoding, if it is known and not UTF-8. It is
	// remembered, since a few bytes may look like another encoding.
	Encoding textfile.Encoding
	// Guessed reports that Encoding is a guess. EncodingNamed reports that the
	// client named it: then the next change uses it, too.
	Guessed, EncodingNamed bool

	whole   bool
	changes []textdiff.Change // of the old content; nil if whole is set
	pieces  []piece
}

// piece is a part of the content that begins at offset.
type piece struct {
	offset int64
	data   []byte
}

// Whole returns an After whose content is content. It keeps a reference to
// content, which must not be changed.
func Whole(content []byte) *After {
	a := &After{whole: true}
	a.addPiece(content)
	return a
}

// Splice returns an After with the content before, in which changes are made.
// The changes must be sorted and must not overlap, and their new text must be
// in the file's encoding. It keeps a reference to before.
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

// addPiece appends data to the pieces of the content.
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

// Slice returns n bytes of the content at offset off, without copying them. It
// returns nil if they are not in one piece. It implements textfile.Slicer.
func (a *After) Slice(off int64, n int) []byte {
	i := sort.Search(len(a.pieces), func(i int) bool { return a.pieces[i].offset > off }) - 1
	if i < 0 || off-a.pieces[i].offset > int64(len(a.pieces[i].data)-n) {
		return nil
	}
	return a.pieces[i].data[off-a.pieces[i].offset:][:n:n]
}

// unchangedPrefix returns the number of leading bytes known to be equal to the
// old content; 0 if nothing is known.
func (a *After) unchangedPrefix() int64 {
	if a.whole || len(a.changes) == 0 {
		return 0
	}
	return int64(a.changes[0].Start)
}

// Bytes returns the whole content: the slice given to Whole, or a copy.
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

// writeTo writes the whole content to w.
func (a *After) writeTo(w io.Writer) error {
	for _, p := range a.pieces {
		if _, err := w.Write(p.data); err != nil {
			return err
		}
	}
	return nil
}

// equals reports whether the new content equals before, the old one. Parts
// taken over from before share its memory, so comparing them is fast.
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

// journalChange returns the journal record of the change from b to this
// content. etag is the etag of this content.
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
