package state

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Change describes how a tool changed a file. It keeps only the bytes of the
// old content that are not in the new content: since a change is undone only
// while the file has the new content, the other bytes are in the file. So the
// record of a small edit in a large file is small.
type Change struct {
	Path    string    `json:"-"` // absolute, links resolved
	Tool    string    `json:"tool"`
	Time    time.Time `json:"time"`
	Created bool      `json:"created,omitempty"` // the file did not exist before
	// Mode is the file's permission bits before the change.
	Mode fs.FileMode `json:"mode,omitempty"`

	Before Version `json:"before"`
	After  Version `json:"after"`
	// Start and End are the numbers of leading and trailing bytes that Before
	// and After share.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Removed is the content of Before between Start and End.
	Removed []byte `json:"-"`

	store      *Store
	recordFile string // the name of the record
}

// Version identifies the content of a file.
type Version struct {
	Size int64         `json:"size"`
	Etag textfile.Etag `json:"etag"`
}

// VersionOf returns the version of a content in memory.
func VersionOf(content []byte) Version {
	return Version{Size: int64(len(content)), Etag: textfile.EtagOf(content)}
}

// NewChange returns the change between two contents in memory. It keeps a
// reference to a part of before. A caller that knows which bytes it replaced
// can create a Change itself, without comparing.
func NewChange(tool, path string, before, after []byte) Change {
	c := Change{Tool: tool, Path: path, Time: time.Now(), Before: VersionOf(before), After: VersionOf(after)}
	limit := min(len(before), len(after))
	start := commonStart(before[:limit], after[:limit])
	end := commonEnd(before[start:], after[start:])
	c.Start, c.End = int64(start), int64(end)
	c.Removed = before[start : len(before)-end]
	return c
}

// compareStep is the number of bytes compared at once, which is much faster
// than comparing single bytes.
const compareStep = 4096

// commonStart returns the number of equal bytes at the beginning of a and b.
func commonStart(a, b []byte) int {
	n, limit := 0, min(len(a), len(b))
	for n+compareStep <= limit && bytes.Equal(a[n:n+compareStep], b[n:n+compareStep]) {
		n += compareStep
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// commonEnd returns the number of equal bytes at the end of a and b.
func commonEnd(a, b []byte) int {
	n, limit := 0, min(len(a), len(b))
	for n+compareStep <= limit && bytes.Equal(a[len(a)-n-compareStep:len(a)-n], b[len(b)-n-compareStep:len(b)-n]) {
		n += compareStep
	}
	for n < limit && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// Restore returns the content before the change, given current, the content
// after it. For a file that the change created, the result is empty; the caller
// removes the file. It returns STALE if current is not the content after the
// change.
func (c *Change) Restore(current []byte) ([]byte, error) {
	if VersionOf(current) != c.After {
		return nil, toolerr.New(toolerr.Stale, "%s was changed after it was written", pathname.Escape(filepath.Base(c.Path)))
	}
	if c.Start < 0 || c.End < 0 || c.Start > c.After.Size-c.End || c.Start+int64(len(c.Removed))+c.End != c.Before.Size {
		return nil, errDamaged
	}
	before := slices.Concat(current[:c.Start], c.Removed, current[c.After.Size-c.End:])
	if VersionOf(before) != c.Before {
		return nil, errDamaged
	}
	return before, nil
}
