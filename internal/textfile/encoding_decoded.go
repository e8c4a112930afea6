package textfile

import (
	"context"
	"sort"

	"golang.org/x/text/transform"
)

// Decoded is text as UTF-8 that maps each character to its original bytes. An
// editor searches in the text and splices the bytes.
type Decoded struct {
	Text []byte

	raw      []byte
	encoding Encoding
	marks    []mark // ascending, the first at 0
}

// mark is a character boundary: its offsets in the text and in the bytes.
type mark struct{ text, raw int }

// markEvery is the distance between marks in bytes. Finding an offset decodes
// at most this much again; a mark costs 16 bytes of memory.
const markEvery = 4 << 10

// DecodeMapped decodes raw like Decode. It holds the text once, at its exact
// size, and little else. It stops when ctx ends and returns its cause.
func (e Encoding) DecodeMapped(ctx context.Context, raw []byte) (*Decoded, error) {
	d := &Decoded{raw: raw, encoding: e}
	size := 0
	d.each(0, make([]byte, markEvery), func(text []byte, _ int) bool {
		size += len(text)
		return ctx.Err() == nil
	})
	d.Text = make([]byte, 0, size)
	at := 0
	d.each(0, make([]byte, markEvery), func(text []byte, used int) bool {
		d.marks = append(d.marks, mark{text: len(d.Text), raw: at})
		d.Text = append(d.Text, text...)
		at += used
		return ctx.Err() == nil
	})
	return d, context.Cause(ctx)
}

// each decodes the bytes from an offset on, a buffer at a time, and passes each
// piece of text with the number of bytes it was decoded from.
func (d *Decoded) each(from int, buf []byte, yield func(text []byte, used int) bool) {
	decoder := d.transformer()
	for rest := d.raw[from:]; len(rest) > 0; {
		written, used, err := decoder.Transform(buf, rest, true)
		if used == 0 && err != nil || !yield(buf[:written], used) {
			return
		}
		rest = rest[used:]
	}
}

func (d *Decoded) transformer() transform.Transformer {
	c := codec(d.encoding)
	if c == nil {
		c = codec(Latin1)
	}
	return c.NewDecoder()
}

// Offset returns the offset in the bytes of the character at offset at in the
// text. It returns false inside a character, and between two characters that
// were encoded as one.
func (d *Decoded) Offset(at int) (int, bool) {
	if at >= len(d.Text) {
		return len(d.raw), at == len(d.Text)
	}
	i := sort.Search(len(d.marks), func(i int) bool { return d.marks[i].text > at }) - 1
	return d.between(d.marks[i], at)
}

// between finds the offset of a position after a known mark.
func (d *Decoded) between(from mark, at int) (int, bool) {
	if from.text == at {
		return from.raw, true
	}
	// A buffer of exactly this length ends at the position, if it is a
	// boundary.
	found, exact := from.raw, false
	d.each(from.raw, make([]byte, at-from.text), func(text []byte, used int) bool {
		found, exact = from.raw+used, from.text+len(text) == at
		return false
	})
	return found, exact
}

// Offsets returns a function like Offset for positions in ascending order, any
// number in a row: it decodes nothing twice.
func (d *Decoded) Offsets() func(at int) (int, bool) {
	var last mark
	return func(at int) (int, bool) {
		if at < last.text || at-last.text > markEvery || at >= len(d.Text) {
			found, ok := d.Offset(at)
			if ok {
				last = mark{text: at, raw: found}
			}
			return found, ok
		}
		found, ok := d.between(last, at)
		if ok {
			last = mark{text: at, raw: found}
		}
		return found, ok
	}
}
