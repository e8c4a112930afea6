package upstream_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A server whose process is stopped while calls wait is found out at once, long
// before its silence says so, and the next call starts it anew.
func TestAStoppedProcessIsFoundOut(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.QuietTime = time.Hour })
	mustDo(t, s, "echo", `{}`)
	p, err := os.FindProcess(s.Status().PID)
	require.NoError(t, err)
	require.NoError(t, suspend(p))
	// Until the last of its threads has taken notice, it may answer.
	require.Eventually(t, func() bool { return upstream.IsStopped(p.Pid) }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = do(ctx, s, "echo", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "was stopped (SIGSTOP or similar)")
	mustDo(t, s, "echo", `{}`)
	require.Equal(t, 1, s.Status().Restarts)
}
