package mcpkittest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// OuterDir makes a directory that is not in /tmp, for tests of programs that
// are given a /tmp of their own: in the first of preferred (those that are
// empty do not count), the user's cache, the working directory, /srv and /home
// that can be written. It goes with the test, which is skipped where there is
// none.
func OuterDir(t testing.TB, preferred ...string) string {
	t.Helper()
	if cache, err := os.UserCacheDir(); err == nil && os.MkdirAll(cache, 0o755) == nil {
		preferred = append(preferred, cache)
	}
	for _, base := range append(preferred, ".", "/srv", "/home") {
		if base == "" {
			continue
		}
		base, err := filepath.Abs(base)
		require.NoError(t, err)
		if base, err = filepath.EvalSymlinks(base); err != nil || strings.HasPrefix(base+"/", "/tmp/") || strings.HasPrefix(base+"/", "/var/tmp/") {
			continue
		}
		dir, err := os.MkdirTemp(base, "mcpkittest-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		return dir
	}
	t.Skip("there is no place outside /tmp to write into: set HOME to one")
	return ""
}
