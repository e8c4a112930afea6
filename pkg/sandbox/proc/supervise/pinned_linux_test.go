package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMaskOfARemovedFile: a hidden file that was removed needs no mask. Another file at its
// path is masked: it may be the new secret. The test has no blanks, so that this fails.
func TestMaskOfARemovedFile(t *testing.T) {
	for name, c := range map[string]struct {
		remove func(path string) error
		masked bool
	}{
		"removed":         {os.Remove, false},
		"with its parent": {func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, false},
		"replaced": {func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			path := filepath.Join(dir, "keys", "hidden")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			held, err := os.Open(path)
			require.NoError(t, err)
			defer held.Close()
			var info unix.Stat_t
			require.NoError(t, unix.Fstat(int(held.Fd()), &info))
			require.NoError(t, c.remove(path))
			s := &Spec{held: []uintptr{held.Fd()}}
			err = s.maskPinned(Pinned{Path: path, Dev: int64(info.Dev), Ino: int64(info.Ino), Held: 1})
			if c.masked {
				fault := (*os.PathError)(nil)
				require.ErrorAs(t, err, &fault)
				require.Equal(t, "open_tree", fault.Op)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
