package state

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// A record is a line with a checksum of the rest, a line of JSON, and the
// removed bytes, compressed or not.

// changeJSON is the JSON line of a record.
type changeJSON struct {
	*Change
	Path    []byte `json:"path"`    // a name need not be UTF-8
	Removed int64  `json:"removed"` // bytes
	Packed  bool   `json:"packed,omitempty"`
}

// encodeChange returns the record of a change. It compresses long removed
// content.
func encodeChange(c *Change) ([]byte, error) {
	payload, packed := c.Removed, false
	if len(payload) >= minCompressed {
		var small bytes.Buffer
		w, err := flate.NewWriter(&small, flate.BestSpeed)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(payload); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		if small.Len() < len(payload) {
			payload, packed = small.Bytes(), true
		}
	}
	head, err := json.Marshal(changeJSON{Change: c, Path: []byte(c.Path), Removed: int64(len(c.Removed)), Packed: packed})
	if err != nil {
		return nil, err
	}
	body := slices.Concat(head, []byte{'\n'}, payload)
	return append(fmt.Appendf(make([]byte, 0, len(body)+17), "%016x\n", xxhash.Sum64(body)), body...), nil
}

// readChange reads the record in a file. It returns errDamaged if the record is
// not valid, or its removed content has more than limit bytes.
func readChange(path string, limit int64) (*Change, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || !isOwnedByUser(info) || info.Size() > limit+maxRecord {
		return nil, errDamaged
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+maxRecord))
	if err != nil {
		return nil, err
	}
	return decodeChange(data, limit)
}

// decodeChange parses a record of encodeChange. It returns the same errors as
// readChange.
func decodeChange(data []byte, limit int64) (*Change, error) {
	sum, body, ok := bytes.Cut(data, []byte{'\n'})
	if !ok || string(sum) != fmt.Sprintf("%016x", xxhash.Sum64(body)) {
		return nil, errDamaged
	}
	head, payload, ok := bytes.Cut(body, []byte{'\n'})
	in := changeJSON{Change: &Change{}}
	if !ok || json.Unmarshal(head, &in) != nil || in.Removed < 0 || in.Removed > limit {
		return nil, errDamaged
	}
	if in.Packed {
		var err error
		if payload, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(payload)), in.Removed+1)); err != nil {
			return nil, errDamaged
		}
	}
	if int64(len(payload)) != in.Removed {
		return nil, errDamaged
	}
	in.Change.Path, in.Change.Removed = string(in.Path), payload
	return in.Change, nil
}
