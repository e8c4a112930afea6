//go:build linux

package proc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Abort kills processes that ignore TERM without waiting for the grace, as
// Close would. Their output is kept.
func TestAbort(t *testing.T) {
	r := newRunner(t, proc.Config{Level: proc.Off, Grace: time.Hour})
	p, err := r.Start(context.Background(), proc.Command{
		Script: `trap '' TERM; (trap '' TERM; sleep 1000) & echo ready; sleep 1000`, Dir: t.TempDir(), Env: []string{"SOME=thing"},
	})
	require.NoError(t, err)
	require.True(t, slices.Contains(p.Environ(), "SOME=thing"))
	waitFor(t, p, "ready\n")
	require.NoError(t, r.Abort())
	result := p.Wait()
	require.Equal(t, proc.Killed, result.Ending)
	require.Equal(t, 137, result.ExitCode)
	require.Equal(t, "ready\n", p.Output().Excerpt(0).Text())
	_, err = r.Start(context.Background(), proc.Command{Script: "true", Dir: t.TempDir()})
	require.Error(t, err)
}
