package walk

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// position is the unfinished work of a walk in one directory and, through the
// sub-directories not yet entered, below it. An interrupted walk has few of
// them, about workers times depth, since work is taken last in, first out. A
// piece is up to pieceSize entries.
type position struct {
	path        string // the directory
	entriesDone int    // entries that are finished, in the system's order
	visitFrom   string // in the next piece, names before this one were visited
	allVisited  bool   // all names of the piece were visited
	enterFrom   string // in the next piece, sub-directories before this one were entered
}

// visited reports whether the earlier walk visited a name of the unfinished
// piece.
func (p *position) visited(name string) bool { return p.allVisited || name < p.visitFrom }

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
		b = binary.AppendUvarint(b, uint64(p.entriesDone))
		text(p.visitFrom)
		text(p.enterFrom)
		flag := byte(0)
		if p.allVisited {
			flag = 1
		}
		b = append(b, flag)
		last = p.path
	}
	return cursorVersion + base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor is the inverse of encodeCursor. It returns INVALID_PARAMS for
// another text, and for paths that are not below the start or occur twice.
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
		p := position{path: last[:same] + text(), entriesDone: number(), visitFrom: text(), enterFrom: text()}
		if !ok || len(b) == 0 || b[0] > 1 || p.path != "" && !fs.ValidPath(replaceNonASCII(p.path)) || p.path == "." || seen[p.path] {
			return nil, bad
		}
		p.allVisited = b[0] == 1
		b = b[1:]
		seen[p.path], last = true, p.path
		list = append(list, p)
	}
	if !ok {
		return nil, bad
	}
	return list, nil
}

// replaceNonASCII replaces characters that are not ASCII: file names may hold
// invalid UTF-8, which fs.ValidPath refuses.
func replaceNonASCII(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x80 {
			return 'x'
		}
		return r
	}, path)
}

// errOtherTree reports a cursor that belongs to another tree.
var errOtherTree = errors.New("the cursor's directory is not below the start")

// resume continues at a position of the cursor. It opens the directories down
// to it, reads their ignore files, and skips the entries that are finished.
func (w *worker) resume(p position) {
	n := w.start
	if p.path != n.path && !strings.HasPrefix(p.path, n.prefix) {
		w.countUnreadable(p.path, errOtherTree)
		return
	}
	for end := len(n.path); end < len(p.path); {
		next := strings.IndexByte(p.path[end+1:], '/')
		if next < 0 {
			end = len(p.path)
		} else {
			end += 1 + next
		}
		child, err := w.openChild(n, p.path[:end])
		w.closeWhenUnused(&frame{node: n})
		if err == nil {
			n = child
			err = n.loadRules(nil, false)
		}
		if err != nil {
			w.countUnreadable(p.path, err)
			return
		}
	}
	n.reader, n.entries = &w.reader, w.buffer
	n.begun = p.entriesDone > 0 // the first piece was finished, so do not use the cache
	for read := 0; read < p.entriesDone; {
		list, done, err := n.nextPiece()
		if err != nil || done {
			break // piece will get the same
		}
		read += len(list)
	}
	w.visitNextPiece(&frame{node: n}, p)
}

// setStartPositions sets the positions at which the walk begins: the start, or
// those of the cursor. It returns INVALID_PARAMS for an invalid cursor.
func (w *walker) setStartPositions() error {
	if w.opts.After == "" {
		w.seeds = []position{{path: w.start.path}}
		return w.start.rewind()
	}
	seeds, err := decodeCursor(w.opts.After)
	if err != nil {
		return err
	}
	w.seeds = seeds
	if err := w.start.loadRules(nil, false); err != nil {
		return err
	}
	return w.start.rewind()
}

// unfinished returns the unfinished work of a walk that has stopped, sorted by
// path, and closes the open directories. It returns nothing after a complete
// walk.
func (w *walker) unfinished() []position {
	list := append(w.seeds, w.interrupted...)
	for _, p := range w.handedOver {
		list = append(list, position{path: p.frame.node.path})
		w.closeWhenUnused(p.frame)
	}
	for _, f := range w.stack {
		p := position{path: f.node.path, entriesDone: f.entriesBefore + f.entriesInPiece}
		if len(f.subdirs) > 0 {
			kid := f.subdirs[0]
			p = position{path: f.node.path, entriesDone: f.entriesBefore, allVisited: true, enterFrom: kid[len(f.node.prefix):]}
		}
		list = append(list, p)
		w.closeWhenUnused(f)
	}
	slices.SortFunc(list, func(a, b position) int { return cmp.Compare(a.path, b.path) })
	return list
}
