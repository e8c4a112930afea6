//go:build linux

package writeguard

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Another directory is read although it changed at the same time as the one
// that had its name.
func TestDirectoriesOfTheSameTime(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "w/p/s"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "q/s/.git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "q/s/.git/config"), nil, 0o644))
	v := inventory{root: root, dirState: func(dir string) (DirState, bool) {
		state, ok := readDirState(dir)
		if filepath.Base(dir) == "s" || filepath.Base(dir) == "p" || filepath.Base(dir) == "q" {
			state.Changed = time.Now().Add(-time.Hour).Truncate(24 * time.Hour).UnixNano()
		}
		return state, ok
	}}
	require.Contains(t, v.scan(nil, nil, nil, nil).files, "q/s/.git/config")
	require.NoError(t, os.Rename(filepath.Join(root, "w/p"), filepath.Join(root, "gone")))
	require.NoError(t, os.Rename(filepath.Join(root, "q"), filepath.Join(root, "w/p")))
	require.Contains(t, v.scan(nil, nil, nil, nil).files, "w/p/s/.git/config")
}

// A directory that was moved away is remembered while commands make and remove
// many others.
func TestKnownDirsAreRemembered(t *testing.T) {
	var d knownDirs
	d.add([]uint64{dirKey("p")})
	var many []uint64
	for i := range uint64(100_000) {
		many = append(many, i)
	}
	d.add(many)
	d.add([]uint64{dirKey("x")})
	require.True(t, d.has(dirKey("p")))
}
