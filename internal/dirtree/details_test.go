package dirtree

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestCountLines(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, "a\r\nb\r\n": 2, "\xff\xfe": 0, "\xff\xfea\x00": 1,
		"\xff\xfea\x00\n\x00": 1, "\xfe\xff\x00a\x00\n\x00b": 2, "\xff\xfe\x0a\x0a": 1, "\xe9t\xe9\n": 1, "\xff\xfea\x00\n": 1,
	} {
		n, ok := countLines([]byte(text))
		require.True(t, ok, "%q", text)
		require.Equal(t, want, n, "%q", text)
	}
	for _, binary := range []string{"a\x00b\n", "\x89PNG\r\n\x1a\n", "\x1f\x8b\x08\n"} {
		_, ok := countLines([]byte(binary))
		require.False(t, ok, "%q", binary)
	}
}

func TestKindName(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0: "file", fs.ModeDir: "directory", fs.ModeSymlink: "link", fs.ModeNamedPipe: "fifo", fs.ModeSocket: "socket",
		fs.ModeDevice: "device", fs.ModeDevice | fs.ModeCharDevice: "device", fs.ModeIrregular: "unknown",
	} {
		require.Equal(t, want, typeName(mode))
	}
}

// TestUnreadable: an unreadable directory is marked in its line and named in
// the header, and the rest is listed.
func TestUnreadable(t *testing.T) {
	denied := &dir{name: "closed", depth: 1, loaded: true, err: fs.ErrPermission}
	top := &dir{loaded: true, entries: []entry{{name: "closed", typ: fs.ModeDir, sub: denied}, {name: "a"}}, onPage: true}
	denied.parent = top
	top.rows = []*shownRow{
		{Row: Row{Path: "closed", Type: "directory"}, label: "closed/", rel: "closed", sub: denied},
		{Row: Row{Path: "a", Type: "file", Error: errorWithoutPath(fs.ErrPermission)}, label: "a", rel: "a"},
	}
	r := &Result{Path: ".", Total: 2, TotalExact: true, Depth: 2, root: top, Unreadable: 4, Unread: []string{"closed", "x", "y"}}
	r.fillRows()
	r.shownRows = 2
	require.Equal(t, ".: 2 entries, depth 2 (4 unreadable: closed, x, y, …)\n"+
		"closed/  (unreadable: permission denied)\na  (unreadable: permission denied)\n", Render(r))
	require.Equal(t, "permission denied", r.Rows[0].Error)
}

func TestPlain(t *testing.T) {
	require.Equal(t, "gone", errorWithoutPath(fs.ErrNotExist))
	require.Equal(t, "odd", errorWithoutPath(errors.New("odd")))
	require.Equal(t, "permission denied", errorWithoutPath(toolerr.New(toolerr.PermissionDenied, "long text")))
}
