package dirtree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/dirtree"
)

// goRoot returns the directory of the Go distribution.
func goRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// BenchmarkGoTree lists the Go distribution that runs the test.
func BenchmarkGoTree(b *testing.B) {
	box := open(b, goRoot(b))
	for _, depth := range []int{2, 20} {
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := dirtree.Tree(b.Context(), box, ".", dirtree.Options{Depth: depth})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkManyEntries lists one directory of 100 000 files.
func BenchmarkManyEntries(b *testing.B) {
	root := b.TempDir()
	for i := range 100_000 {
		require.NoError(b, os.WriteFile(filepath.Join(root, strconv.Itoa(i)), nil, 0o644))
	}
	box := open(b, root)
	b.ReportAllocs()
	for b.Loop() {
		_, err := dirtree.Tree(b.Context(), box, ".", dirtree.Options{})
		require.NoError(b, err)
	}
}
