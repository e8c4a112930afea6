package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path that cannot be made absolute, because the current directory was removed, is
// an error and adds nothing to the list.
func TestRepeatedPathFlag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "removed")
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Chdir(dir)
	var paths repeatedPathFlag
	require.NoError(t, paths.Set("/a"))
	require.NoError(t, paths.Set("b"))
	require.Equal(t, repeatedPathFlag{"/a", filepath.Join(dir, "b")}, paths)

	require.NoError(t, os.Remove(dir))
	require.Error(t, paths.Set("c"))
	require.Error(t, paths.Set(""))
	require.Len(t, paths, 2)
}
