package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHintsAreBoundedByWork: a near search that cannot cover everything
// finds the same in each call, with and without the index.
func TestHintsAreBoundedByWork(t *testing.T) {
	root := t.TempDir()
	write := func(dir string, files int) {
		for i := range files {
			name := filepath.Join(root, dir, fmt.Sprintf("d%d", i%7), fmt.Sprintf("f%d.txt", i))
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte("NEEDLE x\nneedle y\n"), 0o600))
		}
	}
	write("seen", noMatchLimit.files+500)
	write("out", ignoredLimit.files+500)
	require.NoError(t, os.WriteFile(filepath.Join(root, ".ignore"), []byte("out\n"), 0o600))
	for _, noIndex := range []bool{false, true} {
		conf := DefaultConfig()
		conf.NoIndex = noIndex
		g, fsys := newTest(t, conf, root)
		for range 3 {
			got, err := g.run(t.Context(), fsys, defaults("Needle"))
			require.NoError(t, err)
			require.Contains(t, got.Text, fmt.Sprintf("\n%d+ files match case-insensitively (-i=true): seen/d0/f0.txt, seen/d0/f1001.txt, seen/d0/f1008.txt, …", noMatchLimit.files-1)) // .ignore is one of them
			got, err = g.run(t.Context(), fsys, defaults("needle y"))
			require.NoError(t, err)
			require.Contains(t, got.Text, fmt.Sprintf("; %d+ more matching files are ignored, no_ignore=true)", ignoredLimit.files))
			if !noIndex {
				require.NoError(t, g.cache.waitIdle(t.Context()))
			}
		}
	}
}
