package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRulesOfAPathThatChanges: rules are not current if the path that a rule was made for
// led to another file, or to none, while the rule was made, even if it leads to the first
// file again.
func TestRulesOfAPathThatChanges(t *testing.T) {
	if LandlockABI() < minLandlockABI {
		t.Skip("this kernel does not have the version of Landlock")
	}
	for name, c := range map[string]struct {
		replace func(path string) error
		current bool
	}{
		"unchanged": {func(string) error { return nil }, true},
		"removed":   {func(string) error { return nil }, false},
		"replaced":  {func(path string) error { return os.Mkdir(path, 0o755) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "root")
			away := path + ".away"
			require.NoError(t, os.Mkdir(path, 0o755))
			r, err := newRuleset(false)
			require.NoError(t, err)
			defer unix.Close(r.fd)
			on := r.addDependency(path, false, false)
			if !c.current {
				require.NoError(t, os.Rename(path, away))
			}
			require.NoError(t, c.replace(path))
			require.NoError(t, r.allowFile(path, writeRights, unix.O_NOFOLLOW, on))
			if !c.current {
				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, os.Rename(away, path))
			}
			require.Equal(t, c.current, r.isCurrent())
		})
	}
}
