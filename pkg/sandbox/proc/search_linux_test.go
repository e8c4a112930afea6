package proc

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A search leaves alone what it found before: a command that starts at the same time
// reads that.
func TestASearchChangesNothingOfTheLastOne(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a", "b/c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	no := func(string) bool { return false }
	l := limits{hide: no, lifted: no, protected: func(string) string { return "" }}
	s := &search{root: root, keys: map[string]keyFile{}, hidden: map[fileID]*known{}}
	s.update(l)
	found := s.folders
	before := maps.Clone(found)
	require.Len(t, before, 4)
	require.NoError(t, os.Mkdir(filepath.Join(root, "b", "new"), 0o755)) // b is read again, and again
	s.update(l)
	require.Equal(t, before, found)
	require.Len(t, s.folders, 5)
}
