package walk

import (
	"encoding/base64"
	"encoding/binary"
	"io/fs"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// position is the state of a walk in one directory: the remaining work there
// and, through the sub-directories not yet entered, below it. An interrupted
// walk has few of them, about workers times depth, since work is taken last in,
// first out.
type position struct {
	path  string // the directory
	raw   int    // entries that are finished, in the system's order
	visit string // in the next piece, names before this one were visited
	none  bool   // all names of the piece were visited
	enter string // in the next piece, sub-directories before this one were entered
}

// visited reports whether the earlier walk visited a name of the position's
// piece.
func (p *position) visited(name string) bool { return p.none || name < p.visit }

const (
	cursorVersion = "w1"
	maxCursor     = 1 << 20
)

// encodeCursor encodes positions as an opaque string.
func encodeCursor(list []position) string {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	last := ""
	for _, p := range list {
		// A path omits the prefix that it shares with the path before it.
		same := 0
		for same < min(len(last), len(p.path)) && last[same] == p.path[same] {
			same++
		}
		b = binary.AppendUvarint(b, uint64(same))
		text(p.path[same:])
		b = binary.AppendUvarint(b, uint64(p.raw))
		text(p.visit)
		text(p.enter)
		flag := byte(0)
		if p.none {
			flag = 1
		}
		b = append(b, flag)
		last = p.path
	}
	return cursorVersion + base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor is the inverse of encodeCursor. It accepts only directories
// below the start, each once, and otherwise returns INVALID_PARAMS.
func decodeCursor(cursor string) ([]position, error) {
	bad := toolerr.New(toolerr.InvalidParams, "invalid cursor: leave it out to start over")
	data, ok := strings.CutPrefix(cursor, cursorVersion)
	if !ok || len(cursor) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(data)
	if err != nil {
		return nil, bad
	}
	number := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<40 {
			ok = false
			return 0
		}
		b = b[size:]
		return int(n)
	}
	text := func() string {
		n := number()
		if n > len(b) {
			ok = false
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	var list []position
	seen := make(map[string]bool)
	last := ""
	for len(b) > 0 && ok {
		same := number()
		if same > len(last) {
			return nil, bad
		}
		p := position{path: last[:same] + text(), raw: number(), visit: text(), enter: text()}
		if !ok || len(b) == 0 || b[0] > 1 || p.path != "" && !fs.ValidPath(ascii(p.path)) || p.path == "." || seen[p.path] {
			return nil, bad
		}
		p.none = b[0] == 1
		b = b[1:]
		seen[p.path], last = true, p.path
		list = append(list, p)
	}
	if !ok {
		return nil, bad
	}
	return list, nil
}

// ascii replaces non-ASCII bytes: file names may hold invalid UTF-8, which
// fs.ValidPath refuses.
func ascii(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x80 {
			return 'x'
		}
		return r
	}, path)
}
