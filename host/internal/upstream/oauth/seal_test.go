package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/keyring"
)

// fakeKeyring is a keyring in memory. err is its answer to all requests, if set.
type fakeKeyring struct {
	mu    sync.Mutex
	items map[string]string
	err   error
	asked int
}

func (k *fakeKeyring) do(f func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.err == nil {
		f()
	}
	return k.err
}

func (k *fakeKeyring) Get(_ context.Context, item string) (secret string, err error) {
	ok := false
	if err := k.do(func() { secret, ok = k.items[item] }); err != nil {
		return "", err
	}
	if !ok {
		return "", keyring.ErrNotFound
	}
	return secret, nil
}

func (k *fakeKeyring) Set(_ context.Context, item, secret string) error {
	return k.do(func() { k.items[item] = secret })
}

func (k *fakeKeyring) Delete(_ context.Context, item string) error {
	return k.do(func() { delete(k.items, item) })
}

func (p *provider) configWithKeyring() (Config, *fakeKeyring) {
	k := &fakeKeyring{items: map[string]string{}}
	c := p.config()
	c.Keyring = k
	return c, k
}

// fileOf returns the record's file.
func fileOf(t *testing.T, c Config) string {
	t.Helper()
	text, err := os.ReadFile(c.File())
	require.NoError(t, err)
	return string(text)
}

func TestTokensAreEncryptedWithAKeyInTheKeyring(t *testing.T) {
	p := newProvider(t)
	c, keys := p.configWithKeyring()
	a, err := p.login(c)
	require.NoError(t, err)
	require.NoError(t, a.NoKeyring)
	require.True(t, a.Keyring)
	require.Len(t, keys.items, 1)
	for item, key := range keys.items {
		require.True(t, strings.HasPrefix(item, strings.TrimPrefix(p.mcp.URL, "http://")+" "), item)
		require.Less(t, len(item)+len(key), 2048)
		require.NotContains(t, fileOf(t, c), key)
	}
	require.NotContains(t, fileOf(t, c), "access-1")
	require.NotContains(t, fileOf(t, c), "refresh-1")

	// The state of the sign-in is known without the keyring.
	keys.err, keys.asked = errors.New("locked"), 0
	a, ok, err := c.Status()
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, a.SignedIn && a.Refreshes && a.Keyring)
	require.Equal(t, []string{"read"}, a.Scopes)
	require.Zero(t, keys.asked)
	keys.err = nil

	// A refresh replaces the tokens under the same key.
	source := NewSource(c)
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	again, err := source.Refused(t.Context(), token, 401, nil)
	require.NoError(t, err)
	require.True(t, again)
	require.Len(t, keys.items, 1)
	require.NotContains(t, fileOf(t, c), "refresh-2")
	token, err = NewSource(c).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)

	// Another sign-in, too.
	_, err = p.login(c)
	require.NoError(t, err)
	require.Len(t, keys.items, 1)

	found, err := Logout(t.Context(), c)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []string{"refresh-3", "access-3", "refresh-2"}, p.revoked)
	require.Empty(t, keys.items)
	require.NotContains(t, fileOf(t, c), "sealed")
}

func TestTokensAreInAFileWithoutKeyring(t *testing.T) {
	p := newProvider(t)
	c, keys := p.configWithKeyring()
	keys.err = errors.New("no D-Bus")
	a, err := p.login(c)
	require.NoError(t, err)
	require.False(t, a.Keyring)
	require.ErrorContains(t, a.NoKeyring, "no D-Bus")
	require.Contains(t, fileOf(t, c), "access-1")

	c.Kind = InKeyring
	_, err = p.login(c)
	require.ErrorContains(t, err, "no D-Bus")
	require.ErrorContains(t, err, "token_store")
	require.Contains(t, fileOf(t, c), "access-1", "the sign-in of before stays")

	// Tokens in a file are used and refreshed without the keyring, and move there
	// with the next sign-in.
	keys.err, keys.asked = nil, 0
	source := NewSource(c)
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	again, err := source.Refused(t.Context(), token, 401, nil)
	require.NoError(t, err)
	require.True(t, again)
	require.Zero(t, keys.asked)
	_, err = p.login(c)
	require.NoError(t, err)
	require.Len(t, keys.items, 1)
	require.NotContains(t, fileOf(t, c), "access-")

	// With token_store: file they move back, and the key is deleted.
	c.Kind = InFile
	_, err = p.login(c)
	require.NoError(t, err)
	require.Empty(t, keys.items)
	require.Contains(t, fileOf(t, c), "access-")
}

// While the keyring is locked, calls fail and nothing is lost.
func TestLockedKeyring(t *testing.T) {
	p := newProvider(t)
	c, keys := p.configWithKeyring()
	_, err := p.login(c)
	require.NoError(t, err)
	keys.err = errors.New("locked")
	source := NewSource(c)
	for range 2 {
		_, err = source.Token(t.Context())
		require.ErrorContains(t, err, "keyring of the system, which cannot be read: locked")
	}
	_, err = source.Refused(t.Context(), "", 401, []string{`Bearer scope="read"`})
	require.ErrorContains(t, err, "locked")
	require.NotErrorIs(t, err, ErrSignIn)
	keys.err = nil
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)

	// A sign-in and a sign-out are possible nevertheless.
	keys.err = errors.New("locked")
	_, err = p.login(c)
	require.NoError(t, err)
	require.Contains(t, fileOf(t, c), "access-2")
	keys.err, c.Kind = nil, InKeyring
	_, err = p.login(c)
	require.NoError(t, err)
	keys.err = errors.New("locked")
	found, err := Logout(t.Context(), c)
	require.True(t, found)
	require.ErrorContains(t, err, "not revoked")
	require.NotContains(t, fileOf(t, c), "sealed")
}

// Without the key, the tokens are lost: a sign-in is needed.
func TestKeyThatWasDeleted(t *testing.T) {
	p := newProvider(t)
	c, keys := p.configWithKeyring()
	_, err := p.login(c)
	require.NoError(t, err)
	clear(keys.items)
	source := NewSource(c)
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	require.Empty(t, token)
	_, err = source.Refused(t.Context(), "", 401, []string{`Bearer scope="read"`})
	require.ErrorIs(t, err, ErrSignIn)
	_, err = p.login(c)
	require.NoError(t, err)
	token, err = NewSource(c).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)
}

// An encrypted record belongs to one server and user, and cannot be changed.
func TestEncryptedTokensCannotBeMoved(t *testing.T) {
	p := newProvider(t)
	c, _ := p.configWithKeyring()
	_, err := p.login(c)
	require.NoError(t, err)
	other := c
	other.Subject = "mallory"
	var r record
	require.NoError(t, json.Unmarshal([]byte(fileOf(t, c)), &r))
	r.Subject = "mallory"
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other.recordFile(), text, 0o600))
	_, err = NewSource(other).Token(t.Context())
	require.ErrorContains(t, err, "damaged")

	require.NoError(t, json.Unmarshal([]byte(fileOf(t, c)), &r))
	r.Subject = ""
	r.Sealed.Data[20] ^= 1
	text, err = json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.recordFile(), text, 0o600))
	_, err = NewSource(c).Token(t.Context())
	require.ErrorContains(t, err, "damaged")
}

// A host without a user asks for tokens again and does not need the keyring for them.
func TestKeyringOfMachines(t *testing.T) {
	p := newProvider(t)
	p.token = func(w http.ResponseWriter, _ *http.Request) bool {
		writeJSON(w, map[string]any{"access_token": "machine", "token_type": "Bearer", "expires_in": 60})
		return true
	}
	c, keys := p.configWithKeyring()
	c.Grant, c.ClientID, c.ClientSecret = ClientCredentials, "ci", "secret"
	again, err := NewSource(c).Refused(t.Context(), "", 401, []string{"Bearer"})
	require.NoError(t, err)
	require.True(t, again)
	require.Zero(t, keys.asked)

	require.NoError(t, os.Remove(c.File()))
	c.Kind = InKeyring
	again, err = NewSource(c).Refused(t.Context(), "", 401, []string{"Bearer"})
	require.NoError(t, err)
	require.True(t, again)
	require.Len(t, keys.items, 1)
	require.NotContains(t, fileOf(t, c), "machine")
	keys.err = errors.New("locked")
	_, err = NewSource(c).Refused(t.Context(), "", 401, []string{"Bearer"})
	require.ErrorContains(t, err, "locked")
}
