package sandbox_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// TestErrorsNameTheNextStep holds the texts of the commonest mistakes: what is
// missing, where it was looked for, and what to do.
func TestErrorsNameTheNextStep(t *testing.T) {
	tr := newTree(t)
	tr.write(t, "root/sub/notes.txt", "x")
	tr.link(t, "sub/gone", "root/dangling")
	fs := open(t, sandbox.New, tr.root)
	for name, want := range map[string]string{
		"quite-else":          "quite-else does not exist; use ls on . to see its entries",
		"./quite-else":        "./quite-else does not exist; use ls on . to see its entries",
		"sub/quite-else":      "sub/quite-else does not exist; use ls on sub to see its entries",
		"other/file":          "other/file does not exist: there is no other in .; use ls on . to see its entries",
		"dangling":            "dangling does not exist: there is no gone in sub; use ls on sub to see its entries",
		"sub/note.txt":        "sub/note.txt does not exist; did you mean sub/notes.txt?",
		tr.root + "/else":     tr.root + "/else does not exist; use ls on . to see its entries",
		tr.root + "/sub/else": tr.root + "/sub/else does not exist; use ls on sub to see its entries",
	} {
		_, err := fs.Open(name)
		require.EqualError(t, err, want)
	}
	_, err := fs.OpenDir("sub/notes.txt")
	require.EqualError(t, err, "sub/notes.txt is a file, not a directory: name the directory it is in")
}

// TestSpaceAtTheEndIsSeen: without quotes a suggestion would look like the
// name that does not exist.
func TestSpaceAtTheEndIsSeen(t *testing.T) {
	if filepath.Separator == '\\' {
		return // no name there ends in a space
	}
	tr := newTree(t)
	tr.write(t, "root/sub/draft ", "x")
	_, err := open(t, sandbox.New, tr.root).Open("sub/draft")
	require.EqualError(t, err, `sub/draft does not exist; did you mean "sub/draft "?`)
}
