package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherNamesOfSettings: values of settings files are masked under their
// other names (links and hard links), too, and a denied file is searched under
// none of its names.
func TestOtherNamesOfSettings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	root := tree(t, "conf=A=needle\n", "npm=A=needle\n", "netrc=needle\n", "plain=A=needle\n", "sub/x=A=needle\n")
	require.NoError(t, os.Symlink("conf", filepath.Join(root, ".env")))
	require.NoError(t, os.Symlink("../npm", filepath.Join(root, "sub", ".npmrc")))
	require.NoError(t, os.Symlink("netrc", filepath.Join(root, ".netrc")))
	require.NoError(t, os.Link(filepath.Join(root, "sub", "x"), filepath.Join(root, ".env.local")))
	g, fsys := newTest(t, DefaultConfig(), root)
	for range 2 { // the second time from memory
		got, err := g.run(t.Context(), fsys, defaults("needle"))
		require.NoError(t, err)
		require.Contains(t, got.Text, "plain")
		for _, name := range []string{"conf", "npm", "netrc", "sub/x"} {
			require.NotContains(t, got.Text, name)
		}
		require.NoError(t, g.cache.waitIdle(t.Context()))
	}
}
