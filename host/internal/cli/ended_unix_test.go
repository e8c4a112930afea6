//go:build unix

package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host that ends while it is asked is no host that hangs.
func TestAHostThatEndsWhileItIsAsked(t *testing.T) {
	state, err := os.MkdirTemp("", "s") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(state) }) //nolint:errcheck // temporary
	require.NoError(t, os.Mkdir(filepath.Join(state, "hosts"), 0o700))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(state, "hosts", "999999-aaaaaaaa.sock"), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		first, err := l.Accept() // whether it is there
		if err == nil {
			defer first.Close() //nolint:errcheck // nothing was said
		}
		second, err := l.Accept()
		l.Close() //nolint:errcheck // it ends
		if err == nil {
			second.Close() //nolint:errcheck // likewise
		}
	}()
	cmd := exec.CommandContext(t.Context(), "mcp-host", "servers", "--state", state, "--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}}))
	out, err := cmd.CombinedOutput()
	l.Close() //nolint:errcheck // where nobody asked
	<-done
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "did not answer")
}
