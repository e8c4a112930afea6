//go:build oracle

package signin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Twenty hosts with different state directories, as on twenty machines, share one sign-in
// through the store of a cluster. The provider revokes all tokens of a sign-in if a refresh
// token is used twice.
func TestHostsOfAClusterRefreshOnce(t *testing.T) {
	nats := startNATS(t)
	w := newWorld(t, "")
	text, err := os.ReadFile(w.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.config, fmt.Appendf(text, "store: %s\ntoken_store: cluster\n", nats), 0o600))
	machine := func(n int, args ...string) (string, error) {
		cmd := exec.Command(w.host, append(args, "--config", w.config, "--state", filepath.Join(w.state, fmt.Sprint(n)))...)
		cmd.Env = append(os.Environ(), browserUser+"=alice", "BROWSER="+os.Args[0])
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := machine(0, "login", "notes")
	require.NoError(t, err, out)
	require.Contains(t, out, "the tokens are in the store of the cluster")
	for range 2 {
		w.expire("AccessToken")
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				if out, err := machine(n, w.echo()...); err != nil || !strings.Contains(out, "hello") {
					t.Error(out, err)
				}
			})
		}
		all.Wait()
	}
	events := w.events()
	require.Equal(t, 2, events["refresh_token.consumed"])
	require.Zero(t, events["grant.revoked"])
	files, err := filepath.Glob(filepath.Join(w.state, "*", "oauth", "*.json"))
	require.NoError(t, err)
	require.Empty(t, files)

	out, err = machine(1, "config", "check")
	require.NoError(t, err, out)
	require.Contains(t, out, "notes: signed in, renewed at")
	out, err = machine(2, "logout", "notes")
	require.NoError(t, err, out)
	require.Contains(t, out, "notes: signed out")
	out, err = machine(3, w.echo()...)
	require.Error(t, err)
	require.Contains(t, out, "mcp-host login notes")
}
