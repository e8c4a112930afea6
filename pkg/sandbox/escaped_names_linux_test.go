package sandbox_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Callers may send names that are not UTF-8, or that hold control characters, in
// the escaped form in which answers show them.
func TestEscapedNamesAreAccepted(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		names := []string{"new\nline", "esc\x1b[2J", "rtl\u202e", "latin\xe9", `both\n` + "\n", `literal\n`, `wind\ows`, "\xff/in\x01ner", `x\y/z` + "\t", "dir\r/plain"}
		for _, name := range names {
			tr.write(t, "root/"+name, "content of "+name)
		}
		fs := open(t, box, tr.root, tr.second)
		for _, name := range names {
			abs := filepath.Join(tr.root, name)
			for _, given := range []string{name, abs, fs.Display(abs), pathname.Escape(abs)} {
				content, err := read(t, fs, given)
				require.NoError(t, err, "%q", given)
				require.Equal(t, "content of "+name, content)
			}
		}
		// Where both exist, a name is taken as it stands.
		tr.write(t, "root/literal\n", "other")
		content, err := read(t, fs, `literal\n`)
		require.NoError(t, err)
		require.Equal(t, `content of literal\n`, content)
		content, err = read(t, fs, fs.Display(filepath.Join(tr.root, "literal\n")))
		require.NoError(t, err)
		require.Equal(t, `content of literal\n`, content)
		_, err = read(t, fs, `missing\nname`)
		requireCode(t, toolerr.NotFound, err)
		_, err = read(t, fs, "missing\x1b[31m\nname")
		requireCode(t, toolerr.NotFound, err)
		require.Contains(t, err.Error(), `missing\x1b[31m\nname`)
	})
}
