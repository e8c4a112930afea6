//go:build oracle

package signin

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/testkit/secretservice"
)

// inKeyring returns what secret-tool of libsecret finds of the host in the keyring.
func inKeyring(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("secret-tool")
	require.NoError(t, err, "make oracles installs it")
	out, err := exec.Command(program, "search", "--all", "service", "toolroom").CombinedOutput()
	if err != nil {
		require.Empty(t, out) // none was found
	}
	return string(out)
}

// With a keyring, no token is readable in the state directory, and the host works as
// without one.
func TestTokensInTheKeyring(t *testing.T) {
	secretservice.StartBus(t)
	secretservice.StartGnomeKeyring(t, "--unlock")
	require.Empty(t, inKeyring(t))
	w := newWorld(t, "")
	require.Contains(t, w.succeeds("login", "notes", "--token-store", "keyring"), "encrypted with a key in the keyring of the system")
	items := inKeyring(t)
	require.Contains(t, items, "attribute.username = "+strings.TrimPrefix(w.mcp.URL, "http://"))
	require.NotContains(t, w.stored(), "access_token")
	require.NotContains(t, w.stored(), "refresh_token")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Contains(t, w.succeeds("servers"), "signed in, renewed at ")

	// Twenty processes refresh once, and all can read the new tokens.
	before := w.stored()
	w.expire("AccessToken")
	w.callAtOnce(20)
	require.Equal(t, 1, w.events()["refresh_token.consumed"])
	require.NotEqual(t, before, w.stored())
	require.NotContains(t, w.stored(), "access_token")
	require.Equal(t, items, inKeyring(t), "the key stays")

	// Without the D-Bus, the tokens cannot be used, and are not lost.
	bus := w.command(w.echo()...)
	bus.Env = append(bus.Env, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
	out, err := bus.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "encrypted with a key in the keyring of the system, which cannot be read")
	require.Contains(t, w.succeeds(w.echo()...), "hello")

	require.Contains(t, w.succeeds("logout", "notes"), "notes: signed out")
	require.Empty(t, inKeyring(t))
	out2, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out2, "mcp-host login notes")
}

// A D-Bus that does not answer delays a sign-in and nothing else.
func TestKeyringThatDoesNotAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // for the test
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
	w := newWorld(t, "")
	out, ok := w.run("login", "notes", "--token-store", "keyring")
	require.False(t, ok)
	require.Contains(t, out, "the D-Bus of the session does not answer")
	require.Zero(t, w.events()["access_token.saved"], "nobody signs in in vain")
	require.Contains(t, w.succeeds("login", "notes"), "readable by you alone; the keyring of the system cannot be used: the D-Bus of the session does not answer")
	require.NotContains(t, w.succeeds("login", "notes"), "keyring", "said once")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Contains(t, w.succeeds("logout", "notes"), "notes: signed out")
}

// A host without sign-ins does not connect to the D-Bus.
func TestHostsWithoutSignInsLeaveTheBusAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	connected := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connected <- struct{}{}
			conn.Close() //nolint:errcheck // for the test
		}
	}()
	defer l.Close() //nolint:errcheck // for the test
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
	w := newWorld(t, "")
	for _, command := range []string{"servers", "tools", "config check", "call ls path=."} {
		w.run(strings.Fields(command)...) // notes needs a sign-in, and has none
	}
	out, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login notes")
	require.Empty(t, connected)
	require.Contains(t, w.succeeds("login", "notes"), "readable by you alone")
	require.NotEmpty(t, connected, "a sign-in does")
}

// A sign-in by a link whose tokens must be in the keyring tells why it fails, and opens no link.
func TestLinkWithoutTheRequiredKeyring(t *testing.T) {
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "token_store: keyring\n")
			got := w.visit(s, "notes__toolroom_sign_in")
			require.Empty(t, got.Links)
			require.True(t, got.Results[0].IsError)
			require.Contains(t, got.Results[0].Content[0].Text, "the sign-in by a link failed: the tokens cannot be stored: the keyring of the system cannot be used")
			require.Zero(t, w.events()["access_token.saved"])
		})
	}
}
