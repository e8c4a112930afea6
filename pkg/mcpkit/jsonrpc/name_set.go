package jsonrpc

import (
	"bytes"
	"strings"
)

// A NameSet tells which member names an object may have, so that a large object
// need not be scanned again for a member that it lacks. The zero value belongs
// to an object that was not scanned: it may have every name.
type NameSet uint64

const (
	// scanned, incomplete and hostMeta are the bits of a NameSet that belong to
	// no name.
	scanned    NameSet = 1 << 63 // an object was scanned
	incomplete NameSet = 1 << 62 // it may be an incomplete result
	hostMeta   NameSet = 1 << 61 // it may have _meta members of a toolroom host
)

// MayHave reports whether the object may have a member of that name. False is
// certain, true is not: different names can share a bit.
func (s NameSet) MayHave(name string) bool { return s&scanned == 0 || s&nameBit(name) != 0 }

// MayBeIncomplete reports whether the object may be an incomplete result: a
// server's request for input, by resultType of protocol version 2026-07-28.
// False is certain.
func (s NameSet) MayBeIncomplete() bool { return s&scanned == 0 || s&incomplete != 0 }

// MayHaveHostMeta reports whether the object may have a _meta, in any case of
// letters, with a member name that contains toolroom: only this project's hosts
// may set those. False is certain.
func (s NameSet) MayHaveHostMeta() bool { return s&scanned == 0 || s&hostMeta != 0 }

// nameBit returns the bit of a name. The member names of MCP's results have
// different bits.
func nameBit(name string) NameSet {
	if name == "" {
		return 1
	}
	return 1 << ((uint(name[0])*5 + uint(len(name))) % 61)
}

// scanObject adds the names of the object at pos, and the bits for its values,
// and returns the position after the object.
func (s *NameSet) scanObject(b []byte, pos int) (end int, err error) {
	*s |= scanned
	return eachMember(b, pos, 1, func(name string, start int) (int, error) {
		*s |= nameBit(name)
		end, err := skipValue(b, start, 2)
		if err == nil && name == "resultType" && string(b[start:end]) != `"complete"` {
			*s |= incomplete
		}
		if err == nil && len(name) == len("_meta") && strings.EqualFold(name, "_meta") && mayHaveHostMeta(b[start:end]) {
			*s |= hostMeta
		}
		return end, err
	})
}

// mayHaveHostMeta reports whether the bytes of a _meta contain toolroom in any
// case, or an escape, which could hide it.
func mayHaveHostMeta(meta []byte) bool {
	return bytes.IndexByte(meta, '\\') >= 0 || bytes.Contains(bytes.ToLower(meta), []byte("toolroom"))
}
