//go:build linux

package proc_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

func TestSelfTest(t *testing.T) {
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		t.Run(string(level), func(t *testing.T) {
			r := newRunner(t, proc.Config{Level: level})
			report, err := r.SelfTest(context.Background())
			for _, c := range report.Checks {
				t.Logf("%-14s %-45s %s", c.State, c.Name, c.Why)
			}
			t.Logf("gaps: %q", report.Gaps())
			require.NoError(t, err)
			require.Empty(t, report.Failure)
			require.Greater(t, len(report.Checks), 40)
			require.True(t, report.Passed())
		})
	}
}

// A service may have no home directory. Its working directory is then not used
// as the file outside the roots.
func TestSelfTestWithoutHome(t *testing.T) {
	if !slices.Contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	for _, home := range []string{"", ".", "/nonexistent"} {
		t.Setenv("HOME", home)
		_, err := newRunner(t, proc.Config{Level: proc.L2}).SelfTest(context.Background())
		require.NoError(t, err, "HOME=%q", home)
	}
}
