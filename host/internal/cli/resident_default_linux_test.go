package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without any setting, two hosts share the server whose package is known to keep nothing for a
// client. Each starts its own run of a server that is not known, without a notice, and of all
// servers with --no-share.
func TestKnownServersAreSharedWithoutASetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-memory", "dist", "server")
	require.NoError(t, os.MkdirAll(filepath.Dir(known), 0o700))
	require.NoError(t, os.WriteFile(known, []byte("#!/bin/sh\nexec fixture \"$@\"\n"), 0o700))
	state, file := filepath.Join(dir, "state"), filepath.Join(dir, "c.yaml")
	pids := func(server string) string { return filepath.Join(dir, server+".pids") }
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "servers:\n  known: {command: %q, args: [-era, legacy, -pid, %q]}\n"+
		"  unknown: {command: fixture, args: [-era, legacy, -pid, %q]}\n  own: {command: fixture, share: true, args: [-era, legacy, -pid, %q]}\n",
		known, pids("known"), pids("unknown"), pids("own")), 0o600))
	args := []string{"--config", file, "--state", state}

	out, err := exec.Command("mcp-host", append([]string{"call", "known__echo", "text=a"}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Nil(t, sharedStatus(t, state), "a command starts no process that outlives it")
	for _, server := range []string{"known", "unknown", "own"} {
		os.Remove(pids(server)) //nolint:errcheck // the command need not have started it
	}
	t.Cleanup(func() { stopSharing(t, "mcp-host", state) })
	use := func(c *stdioClient) {
		for _, server := range []string{"known", "unknown", "own"} {
			require.Contains(t, c.call(t, server+"__echo", `{"text":"a"}`), `\"a\"`)
		}
	}
	a, b := connectClient(t, "", args...), connectClient(t, "", args...)
	use(a)
	use(b)
	require.Len(t, started(t, pids("known")), 1)
	require.Len(t, started(t, pids("own")), 1)
	require.Len(t, started(t, pids("unknown")), 2)
	require.NotContains(t, a.log.String()+b.log.String(), "share")
	var shared []string
	for _, one := range sharedStatus(t, state).Servers {
		shared = append(shared, fmt.Sprintf("%s: %d hosts", one.Name, one.Hosts))
	}
	require.ElementsMatch(t, []string{"known: 2 hosts", "own: 2 hosts"}, shared)

	use(connectClient(t, "", append([]string{"--no-share"}, args...)...))
	require.Len(t, started(t, pids("known")), 2)
	require.Len(t, started(t, pids("own")), 2)
}

// A host that cannot share servers without being asked to starts them itself, without a notice.
func TestServersThatCannotBeSharedWithoutASetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state, file := filepath.Join(dir, "state"), filepath.Join(dir, "c.yaml")
	require.NoError(t, os.MkdirAll(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "shared"), nil, 0o600))
	require.NoError(t, os.WriteFile(file, []byte("servers: {fix: {command: fixture, scope: shared, args: [-era, legacy]}}\n"), 0o600))
	c := connectClient(t, "", "--config", file, "--state", state)
	require.Contains(t, c.call(t, "fix__echo", `{"text":"a"}`), `\"a\"`)
	require.NotContains(t, c.log.String(), "share")
}
