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

// TestEnvironDuringExec: a process that replaces its program all the time has no
// environment for a moment each time, and is never taken for one without the
// mark: it would be left running.
func TestEnvironDuringExec(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o755))
	c := exec.Command(script)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), supervise.MarkName + "=a mark"}
	require.NoError(t, c.Start())
	defer c.Wait() //nolint:errcheck // it was killed
	defer c.Process.Kill()
	unknown := 0
	for range 20_000 {
		env, ok := supervise.EnvironOf(c.Process.Pid)
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
	c := exec.Command("sleep", "1000")
	c.Env = []string{}
	require.NoError(t, c.Start())
	defer c.Wait() //nolint:errcheck // it was killed
	defer c.Process.Kill()
	require.Eventually(t, func() bool { // its exec may not have ended
		env, ok := supervise.EnvironOf(c.Process.Pid)
		require.Empty(t, env)
		return ok
	}, 30*time.Second, time.Millisecond)
}
