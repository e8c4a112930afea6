package mcpkittest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// OuterDir makes a directory outside /tmp and returns its path, for tests of
// programs that get a private /tmp. It uses the first writable one of preferred
// (empty names are skipped), the user's cache, the working directory, /srv and
// /home. The directory is removed after the test; without a writable place, the
// test is skipped.
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
