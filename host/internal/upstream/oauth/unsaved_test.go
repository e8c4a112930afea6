package oauth

import (
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Refreshed tokens that cannot be stored are used, and the refresh token that they replace is
// not sent again: a server that rotates them would end the sign-in.
func TestTokensThatCannotBeStored(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	s := NewSource(c)
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	away := c.recordsDir() + ".away"
	p.token = func(http.ResponseWriter, *http.Request) bool {
		require.NoError(t, os.Rename(c.recordsDir(), away))
		return false
	}
	again, err := s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	require.True(t, again)
	token, err = s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)
	answered(t, s, token, http.StatusOK)

	// While nothing can be stored, no refresh token is sent.
	p.token = nil
	require.NoError(t, os.WriteFile(c.recordsDir(), nil, 0o600))
	sent := p.count()
	again, err = s.Refused(t.Context(), "access-2", http.StatusUnauthorized, nil)
	require.Error(t, err)
	require.False(t, again)
	require.Equal(t, sent, p.count())
	require.NoError(t, os.Remove(c.recordsDir()))

	require.NoError(t, os.Rename(away, c.recordsDir()))
	s.checked.Store(0) // the file is looked at
	token, err = s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token, "the store still has access-1")
	again, err = s.Refused(t.Context(), "access-2", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	require.True(t, again)
	token, err = s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-3", token)
	require.Equal(t, "refresh-2", p.forms[len(p.forms)-1].Get("refresh_token"))

	other := NewSource(c) // another process
	token, err = other.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-3", token)
}

// Two servers in a configuration with the same address and different clients share a record.
// One of them does not delete the tokens of the other one.
func TestTokensOfAnotherClientStay(t *testing.T) {
	p := newProvider(t)
	one := p.config()
	one.ClientID = "one"
	_, err := p.login(one)
	require.NoError(t, err)
	two := one
	two.ClientID, two.Server = "two", "other"
	s := NewSource(two)
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Empty(t, token)
	_, err = s.Refused(t.Context(), "", http.StatusUnauthorized, []string{`Bearer scope="write"`})
	require.ErrorIs(t, err, ErrSignIn)
	_, err = s.Refused(t.Context(), "", http.StatusForbidden, []string{`Bearer error="insufficient_scope", scope="admin"`})
	require.ErrorIs(t, err, ErrSignIn)
	status, _, err := one.Status()
	require.NoError(t, err)
	require.True(t, status.SignedIn)
	token, err = NewSource(one).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	status, _, err = two.Status()
	require.NoError(t, err)
	require.False(t, status.SignedIn)
}

// A sign-in by another process replaces tokens that could not be stored.
func TestSignInReplacesTokensThatCannotBeStored(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	s := NewSource(c)
	_, err := s.Token(t.Context())
	require.NoError(t, err)
	away := c.recordsDir() + ".away"
	p.token = func(http.ResponseWriter, *http.Request) bool {
		require.NoError(t, os.Rename(c.recordsDir(), away))
		return false
	}
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	p.token = nil
	require.NoError(t, os.Rename(away, c.recordsDir()))
	_, err = p.login(c)
	require.NoError(t, err)
	s.checked.Store(0)
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-3", token)
}

// A sign-in whose tokens cannot be stored is refused before the user is asked, and a sign-out
// that deletes nothing says so and revokes nothing.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	require.NoError(t, os.WriteFile(c.recordsDir(), nil, 0o600))
	_, err := Login(t.Context(), c, Prompt{Open: func(string) error { t.Error("the browser is opened"); return nil }})
	require.Error(t, err)
	require.Zero(t, p.count())
	require.Empty(t, p.registered)
	require.NoError(t, os.Remove(c.recordsDir()))

	_, err = p.login(c)
	require.NoError(t, err)
	away := c.recordsDir() + ".away"
	require.NoError(t, os.Rename(c.recordsDir(), away))
	require.NoError(t, os.WriteFile(c.recordsDir(), nil, 0o600))
	found, err := Logout(t.Context(), c)
	require.Error(t, err)
	require.False(t, errors.As(err, new(*NotRevokedError)))
	require.False(t, found)
	require.Empty(t, p.revoked)
	require.NoError(t, os.Remove(c.recordsDir()))
	require.NoError(t, os.Rename(away, c.recordsDir()))

	p.auth.Close() // the tokens are deleted, not revoked
	found, err = Logout(t.Context(), c)
	require.ErrorAs(t, err, new(*NotRevokedError))
	require.True(t, found)
	status, _, err := c.Status()
	require.NoError(t, err)
	require.False(t, status.SignedIn)
}
