//go:build linux

package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestALinkOnTheWayToARoot is not followed. A command that still runs can put
// one there after the roots were checked, where one root lies in another.
func TestALinkOnTheWayToARoot(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	r := trusted(t, proc.L2)
	for _, readOnly := range []bool{false, true} {
		base := filesIn(t, place(t), "a/moved/b/f", "outside/b/f")
		require.NoError(t, os.Symlink(filepath.Join(base, "outside"), filepath.Join(base, "a", "m")))
		script := "echo x > " + filepath.Join(base, "outside/b/new") + "; echo x > " + filepath.Join(base, "outside/b/f")
		p, err := r.Start(context.Background(), proc.Command{
			Script: script, Dir: base, Rules: roots{{Path: filepath.Join(base, "a")}, {Path: filepath.Join(base, "a/m/b"), ReadOnly: readOnly}},
		})
		if err == nil {
			p.Wait()
		}
		require.ErrorContains(t, err, "a/m/b")
		require.NoFileExists(t, filepath.Join(base, "outside/b/new"))
		text, err := os.ReadFile(filepath.Join(base, "outside/b/f"))
		require.NoError(t, err)
		require.Equal(t, "old\n", string(text))
	}
}
