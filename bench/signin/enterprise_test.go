//go:build oracle

package signin

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// enterprise is the configuration of a server with Enterprise-Managed Authorization. The
// provider of the world is the identity provider and the authorization server.
func enterprise(t *testing.T) *world {
	w := newWorld(t, "")
	w.appendConfig("    oauth: {grant: id_jag, client_id: by-hand, client_secret: by-hand-secret, identity_provider: {issuer: " + w.issuer + ", client_id: sso, client_secret: sso-secret}}\n")
	return w
}

// as makes a user sit at the browser of a command.
func as(user string, cmd *exec.Cmd) (out string, ok bool) {
	cmd.Env = append(cmd.Env, browserUser+"="+user)
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// The user signs in at the identity provider, which decides about the server.
func TestSignInAtTheIdentityProvider(t *testing.T) {
	w := enterprise(t)
	out, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "needs a sign-in at the identity provider")
	require.Contains(t, out, "mcp-host login notes")

	require.Contains(t, w.succeeds("login", "notes"), "notes: signed in, renewed at ")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Equal(t, []string{"alice"}, slices.Compact(w.users))
	require.Equal(t, 1, w.events()["id_jag"])
	require.Zero(t, w.events()["registration_create.success"])

	// Without the access token, another one needs no user, by however many processes.
	w.expire("AccessToken")
	w.callAtOnce(20)
	require.Equal(t, 2, w.events()["id_jag"])
	require.Zero(t, w.events()["grant.revoked"])

	require.Contains(t, w.succeeds("logout", "notes"), "notes: signed out")
	out, ok = w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login notes")
	require.NotContains(t, w.stored(), "access_token")

	out, ok = as("mallory", w.command("login", "notes"))
	require.False(t, ok)
	require.Contains(t, out, "access_denied")
	require.NotContains(t, w.users, "mallory")
}

// A client that opens links signs in at the identity provider during a call.
func TestSignInAtTheIdentityProviderByLink(t *testing.T) {
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			w := enterprise(t)
			got := w.visit(s, "notes__toolroom_sign_in", "notes__echo")
			require.Len(t, got.Links, 1)
			require.True(t, strings.HasPrefix(got.Links[0].URL, w.issuer+"/auth?"), got.Links[0].URL)
			require.Contains(t, got.Pages[0], "mcp-host is signed in to the identity provider "+w.issuer)
			for i, want := range []string{"Signed in to server notes", "hello"} {
				require.False(t, got.Results[i].IsError, got.Results[i])
				require.Contains(t, got.Results[i].Content[0].Text, want)
			}
		})
	}
}
