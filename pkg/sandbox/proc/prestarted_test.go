//go:build linux

package proc_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Rules that a supervisor prepared at L1 are used, but not if the files have
// changed since: a new file is accessible, a new secret is hidden.
func TestPreparedRulesFollowTheFiles(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	env := append(os.Environ(), "HOME="+s.path("home"))
	r, err := proc.New(proc.Config{Level: proc.L1, Environ: append(env, s.env...), TempDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	if report, err := r.SelfTest(context.Background()); err != nil {
		t.Skipf("L1 is not enforced here: %v %s", err, report.Failure)
	}
	run := func(script string) (printed string, ahead bool) {
		p, err := r.Start(context.Background(), proc.Command{Script: script, Dir: s.path("root"), Rules: s.files})
		require.NoError(t, err)
		p.Wait()
		return string(p.Output().Excerpt(0).Text()), proc.UsedPreparation(p)
	}
	settled := func() {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			if _, ahead := run("true"); ahead {
				return
			}
			require.Less(t, time.Since(begun), mcpkittest.MaxWait, "what is prepared is never used")
		}
	}
	write := func(name, text string) { require.NoError(t, os.WriteFile(s.path(name), []byte(text), 0o644)) }
	rename := func(from, to string) { require.NoError(t, os.Rename(s.path(from), s.path(to))) }
	require.NoError(t, os.MkdirAll(s.path("home/plain"), 0o755))
	write("home/plain/file", "plain\n")
	write("home/notes", "NOTES\n")
	settled()
	write("home/new", "new\n")
	write("home/.config/new", "deeper\n")
	write("home/other", "replaced\n")
	rename("home/other", "home/.profile")
	rename("home/notes", "home/.netrc")
	rename("home/plain", "home/.aws")
	printed, ahead := run("cat ~/new ~/.config/new ~/.profile; for f in .netrc .aws/file .config/gh/hosts.yml; do cat ~/$f 2>/dev/null || echo hidden; done")
	require.Equal(t, "new\ndeeper\nreplaced\nhidden\nhidden\nhidden\n", printed)
	require.False(t, ahead)
	// On a busy machine the supervisor may only prepare after the files have
	// changed.
	for begun := time.Now(); ahead || printed != "written\n"; {
		require.Less(t, time.Since(begun), mcpkittest.MaxWait, "it always prepares late")
		settled()
		require.NoError(t, os.RemoveAll(s.path("root.old")))
		rename("root", "root.old")
		require.NoError(t, os.Mkdir(s.path("root"), 0o755))
		printed, ahead = run("echo written >$ROOT/made && cat $ROOT/made")
		require.Equal(t, "written\n", printed)
		require.NoFileExists(t, s.path("root.old/made"))
		require.NoError(t, os.Remove(s.path("root/made")))
	}
}
