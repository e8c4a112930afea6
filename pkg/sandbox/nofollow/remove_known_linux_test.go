package nofollow_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// RemoveKnown keeps an entry that appears while it removes a directory, and what it does
// not know.
func TestRemoveKnown(t *testing.T) {
	for name, theirs := range map[string]string{"": "", "file": "d/sub/theirs", "directory": "d/theirs/sub"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "d/sub/deep"), 0o755))
			for _, file := range []string{"d/a", "d/sub/b", "d/sub/deep/c"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
			}
			require.NoError(t, os.Chmod(filepath.Join(dir, "d/sub/deep"), 0))
			tree, err := nofollow.Open(dir)
			require.NoError(t, err)
			defer tree.Close() //nolint:errcheck // opened only for paths
			known := map[string]bool{"d/a": true, "d/sub": true, "d/sub/b": true, "d/sub/deep": true, "d/sub/deep/c": true}
			unknown, err := tree.RemoveKnown("d", func(rel string, _ fs.FileInfo) bool {
				if rel == "d/sub/deep/c" && theirs != "" { // d and d/sub have been read
					require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(theirs)), 0o755))
					require.NoError(t, os.WriteFile(filepath.Join(dir, theirs), nil, 0o600))
				}
				return known[rel]
			})
			require.NoError(t, err)
			if theirs == "" {
				require.Empty(t, unknown)
				require.NoDirExists(t, filepath.Join(dir, "d"))
				return
			}
			require.NotEmpty(t, unknown)
			require.FileExists(t, filepath.Join(dir, theirs))
			require.NoFileExists(t, filepath.Join(dir, "d/sub/b"))
		})
	}
}
