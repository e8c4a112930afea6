package supervise_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// start starts a program with an environment, and returns its process id. It is
// killed after the test.
func start(t *testing.T, env []string, program string, args ...string) (pid int) {
	t.Helper()
	c := exec.Command(program, args...)
	c.Env = env
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		require.NoError(t, c.Process.Kill())
		require.Error(t, c.Wait(), "it ended by itself")
	})
	return c.Process.Pid
}

// TestEnvironDuringExec: a process that replaces its program all the time has no
// environment for a moment each time, and is never taken for one without the
// mark: it would be left running.
func TestEnvironDuringExec(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o755))
	pid := start(t, []string{"PATH=" + os.Getenv("PATH"), supervise.MarkName + "=a mark"}, script)
	unknown := 0
	for range 20_000 {
		env, ok := supervise.EnvironOf(pid)
		if !ok {
			unknown++
			continue
		}
		require.Contains(t, string(env), supervise.MarkName+"=a mark\x00")
	}
	t.Logf("during an exec: %d of 20 000 reads", unknown)
}

// TestEnvironThatIsEmpty: a process without environment variables is known to
// have none.
func TestEnvironThatIsEmpty(t *testing.T) {
	pid := start(t, []string{}, "sleep", "1000")
	require.Eventually(t, func() bool { // its exec may not have ended
		env, ok := supervise.EnvironOf(pid)
		require.Empty(t, env)
		return ok
	}, 30*time.Second, time.Millisecond)
}
