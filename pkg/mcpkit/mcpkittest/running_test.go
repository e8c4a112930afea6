//go:build unix

package mcpkittest_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestIsRunning(t *testing.T) {
	require.True(t, mcpkittest.IsRunning(os.Getpid()))
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	require.True(t, mcpkittest.IsRunning(cmd.Process.Pid))
	require.NoError(t, cmd.Process.Kill())
	if runtime.GOOS == "linux" { // as a zombie, too
		require.Eventually(t, func() bool { return !mcpkittest.IsRunning(cmd.Process.Pid) }, time.Minute, time.Millisecond)
	}
	require.Error(t, cmd.Wait())
	require.False(t, mcpkittest.IsRunning(cmd.Process.Pid))
}
