package oauth

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const hostCallback = "https://tools.example.com/sign-in/callback"

// of returns the configuration of a user's sign-in.
func of(c Config, user string) Config {
	c.Subject, c.SignInLink = "https://login.example.com\n"+user, true
	return c
}

// attempt signs a user in, with changed parameters of the redirect.
func (p *provider) attempt(c Config, change func(url.Values)) error {
	a, address, err := Begin(p.t.Context(), c, hostCallback)
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := browser.Get(address)
	if err != nil {
		return err
	}
	require.NoError(p.t, res.Body.Close())
	to, err := res.Location()
	require.NoError(p.t, err)
	require.Equal(p.t, "https://tools.example.com/sign-in/callback", to.Scheme+"://"+to.Host+to.Path)
	answer := to.Query()
	if change != nil {
		change(answer)
	}
	suspended, err := a.Suspend()
	require.NoError(p.t, err)
	a, err = Resume(p.t.Context(), c, suspended) // another host of a cluster can receive the answer
	require.NoError(p.t, err)
	_, err = a.Finish(p.t.Context(), answer)
	return err
}

// Users have their own tokens, and one registration of the host.
func TestSignInsOfUsers(t *testing.T) {
	p := newProvider(t)
	host := p.config()
	_, err := p.login(host)
	require.NoError(t, err)
	alice, bob := of(host, "alice"), of(host, "bob")
	require.NoError(t, p.attempt(alice, nil))
	_, found, err := bob.Status()
	require.NoError(t, err)
	require.False(t, found, "alice's sign-in is not bob's")
	require.NoError(t, p.attempt(bob, nil))
	seen := map[string]bool{}
	for _, c := range []Config{host, alice, bob} {
		token, err := NewSource(c).Token(t.Context())
		require.NoError(t, err)
		seen[token] = true
	}
	require.Len(t, seen, 3)
	files, err := filepath.Glob(filepath.Join(host.State, "oauth", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4, "of the host, of each user, and the registration")
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077)
	}

	_, err = Logout(t.Context(), alice)
	require.NoError(t, err)
	token, err := NewSource(bob).Token(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, token)
	require.NoError(t, os.Rename(bob.File(), alice.File()))
	_, err = NewSource(alice).Token(t.Context())
	require.ErrorContains(t, err, "is damaged", "a file of another user is not used")
}

func TestAllUsersAreSignedOut(t *testing.T) {
	p := newProvider(t)
	host := p.config()
	other := host
	other.Account = "work"
	for _, c := range []Config{of(host, "alice"), of(host, "bob"), of(other, "carol")} {
		require.NoError(t, p.attempt(c, nil))
	}
	_, err := p.login(host)
	require.NoError(t, err)
	users, err := LogoutUsers(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, 2, users)
	require.Len(t, p.revoked, 4, "an access and a refresh token of each")
	for c, want := range map[*Config]bool{new(of(host, "alice")): false, new(of(host, "bob")): false, new(of(other, "carol")): true, &host: true} {
		token, err := NewSource(*c).Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, token != "", c.Subject)
	}
	users, err = LogoutUsers(t.Context(), host)
	require.NoError(t, err)
	require.Zero(t, users)
}

func TestRegistrationForUsers(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	for _, user := range []string{"alice", "bob"} {
		require.NoError(t, p.attempt(of(c, user), nil))
	}
	require.Equal(t, []any{"web"}, p.registered)
	_, err := p.login(c)
	require.NoError(t, err)
	require.Equal(t, []any{"web", "native"}, p.registered, "the host's own sign-in has another redirect address")
}

func TestAnswersToUsersThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(url.Values){
		"another state":  func(v url.Values) { v.Set("state", "x") },
		"no issuer":      func(v url.Values) { v.Del("iss") },
		"another issuer": func(v url.Values) { v.Set("iss", "https://evil.example") },
		"no code":        func(v url.Values) { v.Del("code") },
		"two codes":      func(v url.Values) { v.Add("code", "x") },
		"a refusal":      func(v url.Values) { v.Set("error", "access_denied") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			c := of(p.config(), "alice")
			require.Error(t, p.attempt(c, change))
			require.Zero(t, p.count(), "nothing is sent")
			a, _, err := c.Status()
			require.NoError(t, err)
			require.False(t, a.SignedIn)
		})
	}
}
