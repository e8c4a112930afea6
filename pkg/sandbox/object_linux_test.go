package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without /proc, a file is opened again by its name, and refused if it is another
// file by then.
func TestOpenWithoutProc(t *testing.T) {
	if !haveOpenat2() {
		t.Log("no openat2 here: the portable resolver is in use")
		return
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := filepath.Join(base, "dir", "file")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o644))
	root, err := openKernelRoot(base)
	require.NoError(t, err)
	dir, err := root.openChild("dir")
	require.NoError(t, err)
	defer dir.close()
	byStep, err := dir.openChild("file")
	require.NoError(t, err)
	defer byStep.close()
	atOnce, err := root.openDeep("dir/file")
	require.NoError(t, err)
	defer atOnce.close()

	for _, h := range []object{byStep, atOnce} {
		f, st, err := h.(*kernelObject).openThroughProc(-1)
		require.NoError(t, err)
		content, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, "content", string(content))
		require.EqualValues(t, len(content), st.Size)
		require.NoError(t, f.Close())
	}

	require.NoError(t, os.Rename(path, path+".away"))
	require.NoError(t, os.WriteFile(path, []byte("another"), 0o644))
	for _, h := range []object{byStep, atOnce} {
		_, _, err := h.(*kernelObject).openThroughProc(-1)
		require.ErrorIs(t, err, errChanged)
		f, _, err := h.openFile()
		require.NoError(t, err, "the descriptor needs no name")
		require.NoError(t, f.Close())
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("file.away", path))
	_, _, err = atOnce.(*kernelObject).openThroughProc(-1)
	require.Error(t, err, "not even a link to the very file")
}

// Containers without openat2 use the fallback.
func TestPortableRootAgrees(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Symlink(base, filepath.Join(base, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o644))
	for _, open := range []rootOpener{openRootObject, openPortableRoot} {
		h, err := open(base)
		require.NoError(t, err)
		info, err := os.Lstat(base)
		require.NoError(t, err)
		require.True(t, h.isSameFile(info))
		require.False(t, h.isPseudo())
		_, err = open(filepath.Join(base, "link"))
		require.Error(t, err, "a root is opened by a path without links")
		file, err := h.openChild("file")
		require.NoError(t, err)
		_, err = file.writableDir()
		require.ErrorIs(t, err, errNotDirectory)
		file.close()
	}
}
