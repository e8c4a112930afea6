package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// goRoot returns the directory of the Go distribution.
func goRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// BenchmarkGoTree searches the Go distribution that runs the test, with and
// without an index.
func BenchmarkGoTree(b *testing.B) {
	conf := sandbox.Config{Roots: []string{goRoot(b)}}
	for _, warm := range []bool{false, true} {
		c := DefaultConfig()
		c.NoIndex = !warm
		g, _, err := newGrepper(conf, state.Config{}, c)
		require.NoError(b, err)
		defer g.close()
		fsys, err := g.box.FS(b.Context())
		require.NoError(b, err)
		if warm {
			_, err := g.run(b.Context(), fsys, arguments{Pattern: "x", Hidden: true, OutputMode: modeCount, HeadLimit: 100, Sort: "mtime"})
			require.NoError(b, err)
			require.NoError(b, g.cache.waitIdle(b.Context()))
		}
		for _, pattern := range []string{"ErrUnexpectedEOF", "func", `func \w+Error\(`, `(foo|bar)\d+`, `[A-Z]{5}\d`} {
			name := "cold " + pattern
			if warm {
				name = "warm " + pattern
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, err := g.run(b.Context(), fsys, arguments{Pattern: pattern, Hidden: true, OutputMode: modeCount, HeadLimit: 100, Sort: "mtime"})
					require.NoError(b, err)
				}
			})
		}
	}
}
