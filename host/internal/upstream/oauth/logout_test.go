package oauth

import (
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignOut(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	found, err := Logout(t.Context(), c)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []string{"refresh-1", "access-1"}, p.revoked)
	text, err := os.ReadFile(c.File())
	require.NoError(t, err)
	require.NotContains(t, string(text), "access-1")
	require.NotContains(t, string(text), "refresh-1")
	found, err = Logout(t.Context(), c)
	require.NoError(t, err)
	require.False(t, found)
}

// Some providers revoke the access token with the refresh token, and then refuse it.
func TestSignOutWithTokensThatAreRevokedTogether(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	code := "invalid_token"
	p.revocation = func(w http.ResponseWriter, req *http.Request) bool {
		if req.FormValue("token_type_hint") != "access_token" {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{"error": code})
		return true
	}
	_, err := Logout(t.Context(), c)
	require.NoError(t, err)
	_, err = p.login(c)
	require.NoError(t, err)
	code = "invalid_client"
	_, err = Logout(t.Context(), c)
	require.ErrorAs(t, err, new(*NotRevokedError))
}

// The errors of both tokens are one line, as messages of the program are.
func TestSignOutTellsErrorsInOneLine(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	p.revocation = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	_, err := Logout(t.Context(), c)
	require.ErrorAs(t, err, new(*NotRevokedError))
	require.ErrorContains(t, err, "revoking the refresh token: ")
	require.ErrorContains(t, err, "; revoking the access token: ")
	require.NotContains(t, err.Error(), "\n")
}

// Another sign-in does not revoke the refresh token of the one before: providers can end both. The
// sign-out revokes all.
func TestSignOutRevokesEarlierSignIns(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	for range maxFormerTokens + 1 {
		_, err := p.login(c)
		require.NoError(t, err)
	}
	require.Empty(t, p.revoked)
	found, err := Logout(t.Context(), c)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []string{
		"refresh-10", "access-10", "refresh-9", "refresh-8", "refresh-7", "refresh-6", "refresh-5", "refresh-4", "refresh-3", "refresh-2",
	}, p.revoked)
	text, err := os.ReadFile(c.File())
	require.NoError(t, err)
	require.NotContains(t, string(text), "refresh-")
	found, err = Logout(t.Context(), c)
	require.NoError(t, err)
	require.False(t, found)
	require.Len(t, p.revoked, 10)

	// Those of another client in the same record are not revoked with it.
	one, two := c, c
	one.ClientID, two.ClientID = "one", "two"
	for _, of := range []Config{one, one, two, two} {
		_, err := p.login(of)
		require.NoError(t, err)
	}
	p.revoked = nil
	_, err = Logout(t.Context(), two)
	require.NoError(t, err)
	require.Equal(t, []string{"refresh-14", "access-14", "refresh-13"}, p.revoked)
	p.revoked = nil
	_, err = Logout(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, []string{"refresh-12", "refresh-11"}, p.revoked)
}
