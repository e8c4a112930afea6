package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// A record is a line with a checksum, then JSON; long lists of numbers are
// packed.

// errDamaged means a record whose checksum or values are wrong.
var errDamaged = errors.New("the record is damaged")

// seenJSON is the JSON line of a seen record.
type seenJSON struct {
	Path   string          `json:"path"`
	Stamp  Stamp           `json:"stamp"`
	Format textfile.Format `json:"format"`
	Etag   string          `json:"etag"`
	Lines  int64           `json:"lines"`
	Final  bool            `json:"final"`
	Stride int64           `json:"stride,omitempty"`
	Starts []byte          `json:"starts,omitempty"` // differences, as uvarints
	Ranges []rangeJSON     `json:"ranges,omitempty"`

	Told textfile.Encoding `json:"told,omitempty"`
}

// rangeJSON is a Range in a seenJSON; Sums are packed in four bytes each.
type rangeJSON struct {
	First int64  `json:"first"`
	Sums  []byte `json:"sums"` // 4 bytes a line, little-endian
}

// encodeSeen returns the record of s: a line with a checksum, then JSON.
func encodeSeen(s *Seen) ([]byte, error) {
	out := seenJSON{
		Path: s.Path, Stamp: s.Stamp, Format: s.Index.Format, Etag: s.Index.Etag.Full(),
		Lines: s.Index.Lines, Final: s.Index.Final, Told: s.NamedEncoding,
	}
	// For a small file, counting from the beginning is as fast as reading an
	// index.
	if s.Index.Size > textfile.LineIndexMin {
		out.Stride = s.Index.Stride
		last := int64(0)
		for _, start := range s.Index.LinesBefore {
			out.Starts = binary.AppendUvarint(out.Starts, uint64(start-last))
			last = start
		}
	}
	for _, r := range s.Ranges {
		packed := make([]byte, 0, 4*len(r.Sums))
		for _, sum := range r.Sums {
			packed = binary.LittleEndian.AppendUint32(packed, sum)
		}
		out.Ranges = append(out.Ranges, rangeJSON{First: r.First, Sums: packed})
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%016x\n", xxhash.Sum64(body)), body...), nil
}

// decodeSeen parses a record of encodeSeen. It returns errDamaged if the checksum or a
// value is wrong, and the error of encoding/json.
func decodeSeen(data []byte) (*Seen, error) {
	head, body, ok := bytes.Cut(data, []byte{'\n'})
	if !ok || string(head) != fmt.Sprintf("%016x", xxhash.Sum64(body)) {
		return nil, errDamaged
	}
	var in seenJSON
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	s := &Seen{Path: in.Path, Stamp: in.Stamp, NamedEncoding: in.Told}
	s.Index = textfile.Index{
		Format: in.Format, Size: in.Stamp.Size, Lines: in.Lines, Final: in.Final, Stride: in.Stride,
	}
	if _, err := fmt.Sscanf(in.Etag, "%16x", (*uint64)(&s.Index.Etag)); err != nil {
		return nil, errDamaged
	}
	if err := unpackStarts(&s.Index, in.Starts); err != nil {
		return nil, err
	}
	for _, r := range in.Ranges {
		n := len(r.Sums) / 4
		if n == 0 || r.First < 1 || r.First+int64(n)-1 > in.Lines {
			return nil, errDamaged
		}
		sums := make([]uint32, n)
		for i := range sums {
			sums[i] = binary.LittleEndian.Uint32(r.Sums[4*i:])
		}
		s.Ranges = append(s.Ranges, Range{First: r.First, Last: r.First + int64(n) - 1, Sums: sums})
	}
	return s, nil
}

// unpackStarts sets x.LinesBefore to the packed numbers. It returns errDamaged
// if the line index does not fit the file.
func unpackStarts(x *textfile.Index, packed []byte) error {
	total := int64(0)
	for len(packed) > 0 {
		step, n := binary.Uvarint(packed)
		if n <= 0 || step > uint64(x.Lines) {
			return errDamaged
		}
		total += int64(step)
		x.LinesBefore = append(x.LinesBefore, total)
		packed = packed[n:]
	}
	if len(x.LinesBefore) == 0 {
		return nil
	}
	if x.Stride < textfile.ChunkSize || x.Stride%textfile.ChunkSize != 0 ||
		int64(len(x.LinesBefore)) != (x.Size+x.Stride-1)/x.Stride || total > x.Lines {
		return errDamaged
	}
	return nil
}
