package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// goRoot returns the directory of the Go distribution.
func goRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// BenchmarkGoTree searches the Go distribution that runs the test.
func BenchmarkGoTree(b *testing.B) {
	box, err := sandbox.New(sandbox.Config{Roots: []string{goRoot(b)}}).FS(b.Context())
	require.NoError(b, err)
	cache := walk.NewCache(maxCacheBytes)
	for _, sort := range []string{"path", "mtime"} {
		for _, pattern := range []string{"*.go", "src/net/**/*_test.go", "**"} {
			b.Run(sort+" "+pattern, func(b *testing.B) {
				args := defaults(pattern)
				args.Sort = sort
				b.ReportAllocs()
				for b.Loop() {
					_, err := run(b.Context(), box, cache, args)
					require.NoError(b, err)
				}
			})
		}
	}
}

// BenchmarkManyEntries searches one directory of 100 000 files.
func BenchmarkManyEntries(b *testing.B) {
	root := b.TempDir()
	for i := range 100_000 {
		require.NoError(b, os.WriteFile(filepath.Join(root, strconv.Itoa(i)), nil, 0o644))
	}
	box, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(b.Context())
	require.NoError(b, err)
	for b.Loop() {
		_, err := run(b.Context(), box, nil, defaults("*7"))
		require.NoError(b, err)
	}
}
