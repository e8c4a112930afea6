package sandbox_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A directory of our own may be read by its absolute name, also one made
// later; it is no root, nothing in it is written, and no link leads out of it.
func TestReadableBesidesTheRoots(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root, own := filepath.Join(dir, "root"), filepath.Join(dir, "own")
	require.NoError(t, os.Mkdir(root, 0o755))
	outside := filepath.Join(dir, "outside")
	require.NoError(t, os.WriteFile(outside, []byte("no"), 0o600))
	box := sandbox.New(sandbox.Config{Roots: []string{root}, Readable: []string{own}})
	files, err := box.FS(context.Background())
	require.NoError(t, err)
	name := filepath.Join(own, "output.txt")
	_, err = files.Open(name)
	require.True(t, toolerr.Is(err, toolerr.OutsideRoot), err)

	require.NoError(t, os.Mkdir(own, 0o700))
	require.NoError(t, os.WriteFile(name, []byte("all of it"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(own, "link")))
	files, err = box.FS(context.Background())
	require.NoError(t, err)
	f, err := files.Open(name)
	require.NoError(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "all of it", string(text))
	require.Len(t, files.Roots(), 1)
	require.Equal(t, filepath.ToSlash(name), files.Display(name))
	_, err = files.OpenForWrite(name)
	require.Error(t, err)
	for _, other := range []string{filepath.Join(own, "link"), outside, own + "/../outside"} {
		_, err = files.Open(other)
		require.True(t, toolerr.Is(err, toolerr.OutsideRoot), "%s: %v", other, err)
		require.NotContains(t, err.Error(), own+" ")
	}
	// What is gone again is no obstacle.
	require.NoError(t, os.RemoveAll(own))
	files, err = box.FS(context.Background())
	require.NoError(t, err)
	require.Len(t, files.Roots(), 1)
}
