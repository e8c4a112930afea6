package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A NameSet tells which names an object may have as members, so that a large
// one need not be scanned again for a member that it does not have. The zero
// value is that of an object that has not been looked at.
type NameSet uint64

const (
	looked NameSet = 1 << 63
	asking NameSet = 1 << 62
	owning NameSet = 1 << 61
)

// May reports whether the object may have a member of that name. That it has
// one shows in the object only: other names can look the same.
func (s NameSet) May(name string) bool { return s&looked == 0 || s&bit(name) != 0 }

// MayAsk reports whether the object may be a result that is not complete: a
// question of a server of protocol version 2026-07-28 (resultType).
func (s NameSet) MayAsk() bool { return s&looked == 0 || s&asking != 0 }

// MayOwn reports whether the object may have a _meta, in whatever case, with a
// member whose name holds the word toolroom: such are for hosts of ours to set.
func (s NameSet) MayOwn() bool { return s&looked == 0 || s&owning != 0 }

// bit tells the names apart that MCP's results have.
func bit(name string) NameSet {
	if name == "" {
		return 1
	}
	return 1 << ((uint(name[0])*5 + uint(len(name))) % 61)
}

// scan passes over the object at pos of a message.
func (s *NameSet) scan(b []byte, pos int) (end int, err error) {
	*s |= looked
	return eachMember(b, pos, 1, func(name string, start int) (int, error) {
		*s |= bit(name)
		end, err := skipValue(b, start, 2)
		if err == nil && name == "resultType" && string(b[start:end]) != `"complete"` {
			*s |= asking
		}
		if err == nil && len(name) == len("_meta") && strings.EqualFold(name, "_meta") && mayOwn(b[start:end]) {
			*s |= owning
		}
		return end, err
	})
}

// mayOwn looks for the word; what is escaped could be it.
func mayOwn(meta []byte) bool {
	return bytes.IndexByte(meta, '\\') >= 0 || bytes.Contains(bytes.ToLower(meta), []byte("toolroom"))
}

// Items splits one JSON array into its items, checking the whole of it.
func Items(array []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(array) {
		return nil, fmt.Errorf("%w: the text is not valid UTF-8", errSyntax)
	}
	pos := skipSpace(array, 0)
	if pos >= len(array) || array[pos] != '[' {
		return nil, syntax(pos, "expected [")
	}
	var items []json.RawMessage
	end, err := eachItem(array, pos, 0, func(start, end int) { items = append(items, array[start:end:end]) })
	if err != nil {
		return nil, err
	}
	if end = skipSpace(array, end); end != len(array) {
		return nil, syntax(end, "more text after the array")
	}
	return items, nil
}
