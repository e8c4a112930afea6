package proc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// The self-test of macOS tells a confined command from an unconfined one: here with the
// levels of Linux. L1 does not protect secrets in roots, nor the modes of files outside.
func TestPortableSelfTestSeesConfinement(t *testing.T) {
	for _, c := range []struct {
		level proc.Level
		open  []string
	}{
		{proc.Off, []string{"write outside", "make a directory outside", "change modes outside", "move out of a root", "write in a read-only root",
			"read secrets", "connect by TCP", "connect to a unix socket", "signal the server"}},
		{proc.L1, []string{"change modes outside", "read secrets"}},
	} {
		runner, err := proc.New(proc.Config{Level: c.level})
		require.NoError(t, err)
		report := runner.PortableSelfTest(context.Background(), c.level)
		require.NoError(t, runner.Close())
		require.Empty(t, report.Failure)
		var open []string
		for _, check := range report.Checks {
			if check.Allowed {
				require.Equal(t, proc.Enforced, check.State, "%s at %s: %s", check.Name, c.level, check.Why)
			} else if check.State == proc.NotEnforced {
				open = append(open, check.Name)
			}
		}
		require.Equal(t, c.open, open, "at %s", c.level)
		require.Equal(t, len(c.open) == 0, report.Passed())
	}
}

// Levels of other systems are refused here, by name.
func TestLevelsOfOtherSystems(t *testing.T) {
	for _, level := range []proc.Level{proc.Seatbelt, proc.Restricted} {
		runner, err := proc.New(proc.Config{Level: level})
		require.NoError(t, err)
		_, err = runner.SelfTest(context.Background())
		require.ErrorContains(t, err, string(level)+": not for Linux: use L2 or L1")
		require.NoError(t, runner.Close())
	}
}
