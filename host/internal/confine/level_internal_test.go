package confine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A server's private home needs what only the levels of Linux have.
func TestServersAreConfinedOnLinuxOnly(t *testing.T) {
	err := checkLevel(proc.Report{Level: proc.Seatbelt}, egress.Net{}, Settings{})
	require.True(t, toolerr.Is(err, toolerr.SandboxUnavailable), "%v", err)
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		require.NoError(t, checkLevel(proc.Report{Level: level}, egress.Net{}, Settings{}))
	}
}
