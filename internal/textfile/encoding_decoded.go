package textfile

import (
	"context"
	"sort"

	"golang.org/x/text/transform"
)

// Decoded is text as UTF-8 that maps the position of each character to its
// position in the original bytes. An editor searches in the text and splices
// the bytes.
type Decoded struct {
	Text []byte

	raw        []byte
	encoding   Encoding
	boundaries []boundary // ascending, the first at 0
}

// boundary is the start of a character: its offsets in the text and in the
// bytes.
type boundary struct{ text, raw int }

// boundaryInterval is the distance between stored boundaries, in bytes. Finding an
// offset decodes at most this much again; a boundary takes 16 bytes of memory.
const boundaryInterval = 4 << 10

// DecodeMapped decodes raw like Decode and keeps a reference to raw. It
// allocates the text once, at its exact size, and little else. If ctx ends, it
// stops and returns the cause of ctx.
func (e Encoding) DecodeMapped(ctx context.Context, raw []byte) (*Decoded, error) {
	d := &Decoded{raw: raw, encoding: e}
	size := 0
	d.decodePieces(0, make([]byte, boundaryInterval), func(text []byte, _ int) bool {
		size += len(text)
		return ctx.Err() == nil
	})
	d.Text = make([]byte, 0, size)
	at := 0
	d.decodePieces(0, make([]byte, boundaryInterval), func(text []byte, used int) bool {
		d.boundaries = append(d.boundaries, boundary{text: len(d.Text), raw: at})
		d.Text = append(d.Text, text...)
		at += used
		return ctx.Err() == nil
	})
	return d, context.Cause(ctx)
}

// decodePieces decodes the bytes from an offset on, a buffer at a time. It
// passes to yield each piece of text, and the number of bytes it was decoded
// from, until yield returns false.
func (d *Decoded) decodePieces(from int, buf []byte, yield func(text []byte, used int) bool) {
	decoder := d.newDecoder()
	for rest := d.raw[from:]; len(rest) > 0; {
		written, used, err := decoder.Transform(buf, rest, true)
		if used == 0 && err != nil || !yield(buf[:written], used) {
			return
		}
		rest = rest[used:]
	}
}

// newDecoder returns a decoder for the encoding, for Latin-1 if that is
// unknown.
func (d *Decoded) newDecoder() transform.Transformer {
	c := codecOf(d.encoding)
	if c == nil {
		c = codecOf(Latin1)
	}
	return c.NewDecoder()
}

// RawOffset returns the offset in the original bytes of the character at offset
// at in the text. ok is false inside a character, and between two characters
// that were encoded as one.
func (d *Decoded) RawOffset(at int) (raw int, ok bool) {
	if at >= len(d.Text) {
		return len(d.raw), at == len(d.Text)
	}
	i := sort.Search(len(d.boundaries), func(i int) bool { return d.boundaries[i].text > at }) - 1
	return d.offsetAfter(d.boundaries[i], at)
}

// offsetAfter is RawOffset for an offset after a known boundary.
func (d *Decoded) offsetAfter(from boundary, at int) (raw int, ok bool) {
	if from.text == at {
		return from.raw, true
	}
	// A buffer of exactly this length ends at the position, if it is a
	// boundary.
	found, exact := from.raw, false
	d.decodePieces(from.raw, make([]byte, at-from.text), func(text []byte, used int) bool {
		found, exact = from.raw+used, from.text+len(text) == at
		return false
	})
	return found, exact
}

// RawOffsets returns a function like RawOffset that is fast for offsets in
// ascending order: it decodes nothing twice. The function must not be called
// concurrently.
func (d *Decoded) RawOffsets() func(at int) (int, bool) {
	var last boundary
	return func(at int) (int, bool) {
		if at < last.text || at-last.text > boundaryInterval || at >= len(d.Text) {
			found, ok := d.RawOffset(at)
			if ok {
				last = boundary{text: at, raw: found}
			}
			return found, ok
		}
		found, ok := d.offsetAfter(last, at)
		if ok {
			last = boundary{text: at, raw: found}
		}
		return found, ok
	}
}
