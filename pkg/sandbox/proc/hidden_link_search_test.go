package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestANameCountsOnceAtTwoPlaces: if the directory of a hard link is moved during a search,
// the link, seen at both places, does not count for another link that was not found.
func TestANameCountsOnceAtTwoPlaces(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for _, dir := range []string{"keys", "sub/deep", "node_modules"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o755))
	}
	require.NoError(t, os.WriteFile(at("keys/hidden"), []byte("x"), 0o644))
	require.NoError(t, os.Link(at("keys/hidden"), at("sub/deep/other.txt")))
	info, err := os.Lstat(at("keys/hidden"))
	require.NoError(t, err)
	id, ok := fileIDOf(info)
	if !ok {
		t.Skip("files have no identity on this system")
	}
	known := linkNames{}
	known.addPath(id, at("keys/hidden"))
	require.Len(t, known[id], 1)

	w := linkWalk{of: map[fileID]int{id: 1}, names: map[linkName]hardLink{}}
	require.NoError(t, os.Rename(at("keys"), at("node_modules/keys")))
	w.walk([]string{at("node_modules")}) // sub was in keys' place
	require.Len(t, w.names, 1)
	require.True(t, w.isIncomplete(known))

	require.NoError(t, os.Rename(at("node_modules/keys"), at("keys")))
	w.walk([]string{at("keys"), at("sub")})
	require.False(t, w.isIncomplete(known))
	for _, link := range w.names {
		require.FileExists(t, link.path, "the last path of each name")
	}
	known.addPath(id, at("keys/gone"))
	require.Len(t, known[id], 1)
}
