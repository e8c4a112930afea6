package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestAccessesOfAWatchedCommand: a watched command's accesses are reported, also those
// that fail and those of its children.
func TestAccessesOfAWatchedCommand(t *testing.T) {
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		t.Run(string(level), func(t *testing.T) {
			s := newScene(t)
			r := newRunner(t, proc.Config{Level: level, Watch: true})
			result, out := run(t, r, s.command(`
				cat /etc/hostname >/dev/null; echo x >new; mkdir fresh && cd fresh; echo y >deep; mv deep moved
				cat "$OUT/missing"; sh -c 'test -e /no/such/file'; (exec 3<>/dev/tcp/192.0.2.7/81); true`))
			require.Zero(t, result.ExitCode, out)
			root := s.path("root")
			for _, want := range []proc.Access{
				{Kind: proc.AccessRead, Name: "/etc/hostname"},
				{Kind: proc.AccessWrite, Name: filepath.Join(root, "new")},
				{Kind: proc.AccessWrite, Name: filepath.Join(root, "fresh")},
				{Kind: proc.AccessWrite, Name: filepath.Join(root, "fresh", "deep")},
				{Kind: proc.AccessWrite, Name: filepath.Join(root, "fresh", "moved")},
				{Kind: proc.AccessRead, Name: s.path("outside/missing")},
				{Kind: proc.AccessRead, Name: "/no/such/file"},
			} {
				require.Contains(t, result.Accesses, want)
			}
			if level == proc.L2 { // at L1, the socket cannot be made
				require.Contains(t, result.Accesses, proc.Access{Kind: proc.AccessConnect, Name: "192.0.2.7:81"})
			}
			seen := map[proc.Access]bool{}
			for _, access := range result.Accesses {
				require.False(t, seen[access], "%v twice", access)
				require.True(t, access.Kind == proc.AccessConnect || filepath.IsAbs(access.Name), access)
				seen[access] = true
			}
			_, err := os.Stat(filepath.Join(root, "fresh", "moved"))
			require.NoError(t, err, "the calls were made")

			result, _ = run(t, s.runner(t, level), s.command("cat /etc/hostname"))
			require.Empty(t, result.Accesses, "without Watch")
		})
	}
}
