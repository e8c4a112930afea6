package proc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// rules let a command use one root.
type rules struct{ root string }

func (r rules) Roots() []sandbox.Root       { return []sandbox.Root{{Path: r.root}} }
func (r rules) Masked(abs string) bool      { return false }
func (r rules) Denied(abs string) bool      { return false }
func (r rules) Protected(abs string) string { return "" }

// levels are those that this machine enforces. The others are named.
func levels(t testing.TB) []proc.Level {
	t.Helper()
	found := []proc.Level{proc.Off}
	for _, level := range []proc.Level{proc.L1, proc.L2} {
		r, err := proc.New(proc.Config{Level: level, TempDir: t.TempDir()})
		require.NoError(t, err)
		if _, err = r.SelfTest(context.Background()); err != nil {
			t.Logf("not run at %s: %v", level, err)
			continue
		}
		found = append(found, level)
	}
	return found
}
