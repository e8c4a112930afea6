//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestSettingsAmongOtherFiles: settings in a directory that their program also
// writes other files to are kept, and the other files can be written.
func TestSettingsAmongOtherFiles(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user("mkdir -p .jj/repo/store _darcs/prefs; echo mine > .jj/repo/config.toml; echo mine > _darcs/prefs/defaults")
		r := p.runner(level)
		result, out := run(t, r, p.command("echo x > .jj/repo/store/x && echo x > .jj/new && echo x > _darcs/prefs/sources"))
		require.Zero(t, result.ExitCode, out)
		require.Empty(t, result.Reverted)
		run(t, r, p.command("echo evil > .jj/repo/config.toml; echo evil > _darcs/prefs/defaults"))
		for _, name := range []string{".jj/repo/config.toml", "_darcs/prefs/defaults"} {
			text, err := os.ReadFile(filepath.Join(p.root, name))
			require.NoError(t, err)
			require.Equal(t, "mine\n", string(text), "%s at %s", name, level)
		}
	}
}
