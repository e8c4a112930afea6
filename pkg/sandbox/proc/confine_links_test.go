//go:build linux

package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestALinkOnTheWayToARoot: a link in the path to a root is not followed. If
// one root contains another, a running command can put a link there after the
// roots were checked.
func TestALinkOnTheWayToARoot(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		r := trusted(t, level)
		readOnly := level == proc.L2
		base := filesIn(t, place(t), "a/moved/b/f", "outside/b/f")
		require.NoError(t, os.Symlink(filepath.Join(base, "outside"), filepath.Join(base, "a", "m")))
		script := `echo x > "` + filepath.Join(base, "outside/b/new") + `"; echo x > "` + filepath.Join(base, "outside/b/f") + `"`
		p, err := r.Start(context.Background(), proc.Command{
			Script: script, Dir: base, Rules: roots{{Path: filepath.Join(base, "a")}, {Path: filepath.Join(base, "a/m/b"), ReadOnly: readOnly}},
		})
		if err == nil {
			p.Wait()
		}
		require.ErrorContains(t, err, "a/m/b")
		require.NoFileExists(t, filepath.Join(base, "outside/b/new"))
		text, err := os.ReadFile(filepath.Join(base, "outside/b/f"))
		require.NoError(t, err)
		require.Equal(t, "old\n", string(text))
	}
}

// TestAHomeInASystemDirectory: the credentials of a home in a system
// directory, as services have, stay hidden.
func TestAHomeInASystemDirectory(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("/var/cache", "proc-test-home-")
	if err != nil {
		t.Skip("not run: " + err.Error())
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	filesIn(t, home, ".ssh/id_rsa", "settings")
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		r := newRunner(t, proc.Config{Level: level, Environ: append(os.Environ(), "HOME="+home)})
		proc.TrustLevel(r, level)
		_, out := run(t, r, proc.Command{Script: "cat ~/settings; cat ~/.ssh/id_rsa; ls /usr/bin/env", Rules: roots{{Path: t.TempDir()}}})
		require.Contains(t, out, "/usr/bin/env\n", level)
		require.Equal(t, 1, strings.Count(out, "old\n"), "%s: %s", level, out)
	}
}
