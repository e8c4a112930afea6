package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// No call, whatever comes of it, leaves a descriptor behind.
func TestNoDescriptorLeaks(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := attackTree(t)
		fs := open(t, box, tr.root, tr.second)
		round := func() {
			for _, c := range attacks {
				name := strings.ReplaceAll(c.name, "BASE", tr.base)
				if f, err := fs.Open(name); err == nil {
					require.NoError(t, f.Close())
				}
				if d, err := fs.OpenDir(name); err == nil {
					require.NoError(t, d.Close())
				}
				if _, err := fs.Stat(name); err != nil {
					require.NotEmpty(t, err.Error())
				}
			}
		}
		round() // opens what is kept for good
		before, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		round()
		after, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		require.LessOrEqual(t, len(after), len(before))
	})
}
