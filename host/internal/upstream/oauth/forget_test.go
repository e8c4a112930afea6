package oauth

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// refuseClient lets the token endpoint refuse the client.
func (p *provider) refuseClient(code string) {
	p.token = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{"error": code})
		return true
	}
}

// registrations returns the number of registrations.
func (p *provider) registrations() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.registered)
}

// loginByLink signs a user in by a link.
func (p *provider) loginByLink(c Config) (SignInStatus, error) {
	a, address, err := Begin(p.t.Context(), c, "http://127.0.0.1:1/sign-in/callback")
	if err != nil {
		return SignInStatus{}, err
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(address)
	if err != nil {
		return SignInStatus{}, err
	}
	to, err := res.Location()
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return SignInStatus{}, err
	}
	return a.Finish(p.t.Context(), to.Query())
}

// Many providers keep registrations in memory only. A registration that they do not know any
// more is not used again.
func TestForgottenClientRegistersAgain(t *testing.T) {
	byDevice := func(p *provider, c Config) (SignInStatus, error) {
		return Login(p.t.Context(), c, Prompt{Device: func(string, string) error { return nil }})
	}
	for name, c := range map[string]struct {
		login   func(*provider, Config) (SignInStatus, error)
		user    string
		refresh bool // whether the refusal is of a refresh
	}{
		"at a sign-in":                   {login: (*provider).login},
		"at a refresh":                   {login: (*provider).login, refresh: true},
		"at a sign-in on another device": {login: byDevice},
		"at a user's sign-in":            {login: (*provider).loginByLink, user: "issuer\nalice"},
		"at a user's refresh":            {login: (*provider).loginByLink, user: "issuer\nalice", refresh: true},
	} {
		for _, code := range []string{"invalid_client", "unauthorized_client"} {
			t.Run(code+" "+name, func(t *testing.T) {
				p := newProvider(t)
				cfg := p.config()
				cfg.Subject = c.user
				for range 2 {
					_, err := c.login(p, cfg)
					require.NoError(t, err)
				}
				require.Equal(t, 1, p.registrations(), "a registration that works is used again")

				p.refuseClient(code)
				var err error
				if c.refresh {
					_, err = NewSource(cfg).Refused(t.Context(), "access-2", http.StatusUnauthorized, nil)
					require.ErrorIs(t, err, ErrSignIn)
				} else {
					_, err = c.login(p, cfg)
				}
				require.ErrorContains(t, err, code)
				require.Equal(t, 1, p.registrations())
				p.token = nil
				_, err = c.login(p, cfg)
				require.NoError(t, err)
				require.Equal(t, 2, p.registrations())
			})
		}
	}
}

// Only the registration of the refused client is removed: another process can have registered
// meanwhile.
func TestNewerRegistrationStays(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	old := registration{ClientID: "older", RedirectURI: "http://127.0.0.1:1/callback"}
	require.NoError(t, c.forgetClient(t.Context(), p.auth.URL, old))
	r, err := c.loadRecord(t.Context())
	require.NoError(t, err)
	require.Equal(t, "registered", r.Clients[p.auth.URL].ClientID)
}

// A provider that does not know the client shows an error page, and the browser never returns.
func TestSignInThatTimesOutRegistersAgain(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	ctx, refuse := context.WithCancelCause(t.Context())
	_, err := Login(ctx, c, Prompt{Open: func(string) error { refuse(ErrLinkNotOpened); return nil }})
	require.Error(t, err)
	_, err = p.login(c)
	require.NoError(t, err)
	require.Equal(t, 1, p.registrations(), "a link that was not opened tells nothing about the registration")

	shown, end := context.WithCancel(t.Context())
	defer end()
	_, err = Login(&lateContext{t.Context(), shown}, c, Prompt{Open: func(string) error { end(); return nil }})
	require.ErrorContains(t, err, "not completed in time")
	token, err := NewSource(c).Token(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, token, "the tokens of the earlier sign-in stay")
	_, err = p.login(c)
	require.NoError(t, err)
	require.Equal(t, 2, p.registrations())

	interrupted, interrupt := context.WithCancel(t.Context())
	_, err = Login(interrupted, c, Prompt{Open: func(string) error { interrupt(); return nil }})
	require.Error(t, err)
	_, err = p.login(c)
	require.NoError(t, err)
	require.Equal(t, 3, p.registrations())
}

// lateContext is over its deadline when another context has ended.
type lateContext struct {
	context.Context
	over context.Context
}

func (c *lateContext) Done() <-chan struct{} { return c.over.Done() }

func (c *lateContext) Err() error {
	if c.over.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

func TestSignOutForgetsRegistrations(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	_, err := Logout(t.Context(), c)
	require.NoError(t, err)
	_, err = p.login(c)
	require.NoError(t, err)
	require.Equal(t, 2, p.registrations())

	user := c
	user.Subject = "issuer\nalice"
	_, err = p.loginByLink(user)
	require.NoError(t, err)
	_, err = p.loginByLink(user)
	require.NoError(t, err)
	require.Equal(t, 3, p.registrations())
	users, err := LogoutUsers(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 1, users)
	_, err = p.loginByLink(user)
	require.NoError(t, err)
	require.Equal(t, 4, p.registrations())
}

// A configured client is never registered: a server that refuses it changes nothing in the
// record but the tokens.
func TestConfiguredClientIsNotForgotten(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	c.ClientID = "configured"
	_, err := p.login(c)
	require.NoError(t, err)
	r, err := c.loadRecord(t.Context())
	require.NoError(t, err)
	require.Contains(t, r.Clients, p.auth.URL, "of the time before client_id was configured")
	p.refuseClient("invalid_client")
	_, err = NewSource(c).Refused(t.Context(), r.Tokens.Access, http.StatusUnauthorized, nil)
	require.ErrorIs(t, err, ErrSignIn)
	r, err = c.loadRecord(t.Context())
	require.NoError(t, err)
	require.Nil(t, r.Tokens)
	require.Contains(t, r.Clients, p.auth.URL)
	text, err := os.ReadFile(c.File())
	require.NoError(t, err)
	require.Contains(t, string(text), "registered")
}
