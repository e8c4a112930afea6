package core

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// waiting returns a host with a sign-in that waits for an answer with the state S from
// the browser with the cookie C. login says that it is the answer of the users' issuer.
func waiting(t *testing.T, login bool) (*App, *userSignIn) {
	t.Helper()
	a := &App{Config: config.Config{Auth: &accesstoken.Config{URL: "https://tools.example.com"}}}
	one, err := a.links.open(oauth.Config{Server: "notes", URL: "https://notes.example.com", Storage: oauth.Storage{State: t.TempDir()}, Subject: "alice"})
	require.NoError(t, err)
	step := &browserStep{signIn: one, link: one.id, cookie: "C"}
	if login {
		step.login = &accesstoken.BrowserLogin{}
	} else {
		step.attempt = &oauth.Attempt{}
	}
	a.links.registerStep("S", step)
	return a, one
}

// Only the browser that opened the link can answer, once, at the address for this step.
func TestAnswersToALink(t *testing.T) {
	for name, c := range map[string]struct {
		query, cookie string
		login, isUser bool
		late          bool
		ok            bool
	}{
		"the answer":                  {query: "state=S&code=c", cookie: "C", ok: true},
		"the answer of the issuer":    {query: "state=S&code=c", cookie: "C", login: true, isUser: true, ok: true},
		"no cookie":                   {query: "state=S&code=c"},
		"the cookie of another":       {query: "state=S&code=c", cookie: "D"},
		"another state":               {query: "state=T&code=c", cookie: "C"},
		"no state":                    {query: "code=c", cookie: "C"},
		"two states":                  {query: "state=S&state=S&code=c", cookie: "C"},
		"a step is skipped":           {query: "state=S&code=c", cookie: "C", login: true},
		"an answer to the other step": {query: "state=S&code=c", cookie: "C", isUser: true},
		"an answer after ten minutes": {query: "state=S&code=c", cookie: "C", late: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, one := waiting(t, c.login)
			if c.late {
				one.expires = time.Now().Add(-time.Second)
			}
			r := httptest.NewRequest(http.MethodGet, "/sign-in/callback?"+c.query, nil)
			if c.cookie != "" {
				r.AddCookie(&http.Cookie{Name: signInCookie + one.id, Value: c.cookie})
			}
			require.Equal(t, c.ok, a.links.takeStep(r, c.isUser) != nil)
			if c.ok {
				require.Nil(t, a.links.takeStep(r, c.isUser), "a state is accepted once")
			}
		})
	}
}

func TestSignInPages(t *testing.T) {
	a, one := waiting(t, false)
	visit := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.SignInPages().ServeHTTP(w, httptest.NewRequest(method, path, nil))
		require.Empty(t, w.Header().Get("Location"), "nothing in a request redirects")
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, "DENY", w.Header().Get("X-Frame-Options"))
		return w
	}
	for _, path := range []string{
		"/sign-in/", "/sign-in/unknown", "/sign-in/https://evil.example", "/sign-in//evil.example?redirect_uri=https://evil.example",
		"/sign-in/user?state=S&redirect_uri=https://evil.example", "/sign-in/callback?state=S&code=c&next=https://evil.example", "/sign-in/" + one.id + "/",
	} {
		w := visit(http.MethodGet, path)
		require.GreaterOrEqual(t, w.Code, 400, path)
		require.NotContains(t, w.Body.String(), "evil")
	}
	require.Equal(t, http.StatusMethodNotAllowed, visit(http.MethodPost, "/sign-in/"+one.id).Code)
	require.Equal(t, http.StatusMethodNotAllowed, visit(http.MethodHead, "/sign-in/"+one.id).Code)
	require.NotNil(t, a.links.get(one.id), "the sign-in still waits")
}

func TestLinksEnd(t *testing.T) {
	a, one := waiting(t, false)
	same, err := a.links.open(one.cfg)
	require.NoError(t, err)
	require.Same(t, one, same, "calls of one user wait for one sign-in")
	other := one.cfg
	other.Subject = "bob"
	bobs, err := a.links.open(other)
	require.NoError(t, err)
	require.NotEqual(t, one.id, bobs.id)

	a.links.registerStep("T", &browserStep{signIn: one, attempt: &oauth.Attempt{}})
	require.Len(t, a.links.byState, 2, "the link was opened again")
	refused := errors.New("refused")
	a.links.end(one, refused)
	a.links.end(one, nil)
	<-one.done
	require.Equal(t, refused, one.err)
	require.Nil(t, a.links.get(one.id))
	require.Empty(t, a.links.byState)
	a.links.registerStep("S", &browserStep{signIn: one})
	require.Empty(t, a.links.byState, "the sign-in has ended")

	bobs.expires = time.Now().Add(-time.Second)
	require.Nil(t, a.links.get(bobs.id))
	again, err := a.links.open(other)
	require.NoError(t, err)
	require.NotEqual(t, bobs.id, again.id)
	<-bobs.done
	require.Error(t, bobs.err)
}

// A link that has ended is not restored from the copy in the store that was read before.
func TestLinkThatHasEndedIsNotRestored(t *testing.T) {
	a, one := waiting(t, false)
	a.links.end(one, nil)
	require.Nil(t, a.links.restore(one.id, one.cfg, one.expires))
	require.NotNil(t, a.links.restore("other", one.cfg, one.expires))

	late, err := a.links.open(one.cfg)
	require.NoError(t, err)
	late.expires = time.Now().Add(-time.Second)
	a.links.end(late, nil)
	bob := one.cfg
	bob.Subject = "bob"
	bobs, err := a.links.open(bob)
	require.NoError(t, err)
	a.links.end(bobs, nil)
	require.NotContains(t, a.links.over, late.id, "it has expired in the store, too")
	require.Contains(t, a.links.over, bobs.id)
}

// deletions are the keys of a store that notes changes.
type deletions struct {
	store.Keys
	on  func(key string)
	put *[]string
}

func (d deletions) Put(_ context.Context, key string, _ []byte, _ store.Version, _ time.Time) (store.Version, error) {
	*d.put = append(*d.put, key)
	return 1, nil
}

func (d deletions) Delete(_ context.Context, key string, _ store.Version) error {
	d.on(key)
	return nil
}

// A call goes on after its link was deleted, also from the store.
func TestLinkIsDeletedBeforeTheCallGoesOn(t *testing.T) {
	a, one := waiting(t, false)
	var deleted, put []string
	a.store = &store.Store{Keys: deletions{put: &put, on: func(key string) {
		select {
		case <-one.done:
			t.Error("the sign-in has ended before")
		default:
		}
		deleted = append(deleted, key)
	}}}
	a.endLink(t.Context(), one, nil)
	<-one.done
	require.Equal(t, []string{linkKey(one.id)}, deleted)
	require.Equal(t, []string{endKey(one.cfg)}, put)
}

// usersIssuer makes an issuer the users' issuer of hosts. It issues no tokens.
func usersIssuer(t *testing.T, hosts ...*App) {
	t.Helper()
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, //nolint:errcheck // the test fails then
			issuer.URL, issuer.URL+"/authorize", issuer.URL+"/token", issuer.URL+"/keys")
	}))
	t.Cleanup(issuer.Close)
	v, err := accesstoken.New(accesstoken.Config{Issuer: issuer.URL, URL: "https://tools.example.com", ClientID: "host"})
	require.NoError(t, err)
	for _, a := range hosts {
		a.SetIssuer(v)
	}
}

// visitor is a browser with cookies.
type visitor struct {
	t       *testing.T
	a       *App
	cookies map[string]*http.Cookie
}

// visit requests a page and returns the answer.
func (v *visitor) visit(path string) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, cookie := range v.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	v.a.SignInPages().ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		v.cookies[cookie.Name] = cookie
	}
	return w
}

// open opens a link and returns the state for the answer of the users' issuer.
func (v *visitor) open(one *userSignIn) (state string) {
	v.t.Helper()
	w := v.visit("/sign-in/" + one.id)
	require.Equal(v.t, http.StatusSeeOther, w.Code, w.Body)
	to, err := w.Result().Location()
	require.NoError(v.t, err)
	return to.Query().Get("state")
}

func newVisitor(t *testing.T, a *App) *visitor {
	return &visitor{t, a, map[string]*http.Cookie{}}
}

// A user who refuses at the issuer of the users ends the wait of the call, in a browser in which the user has
// signed in before. In another browser, where it could be anybody, a refusal ends nothing, and the page tells what to do.
// Other errors of the issuer can be over when the user opens the link again.
func TestRefusalAtTheIssuerEndsTheSignIn(t *testing.T) {
	a, one := waiting(t, true)
	usersIssuer(t, a)
	users := newVisitor(t, a)
	users.cookies[userCookie] = &http.Cookie{Name: userCookie, Value: a.browserMark("alice")}
	mallory := newVisitor(t, a)
	mallory.cookies[userCookie] = &http.Cookie{Name: userCookie, Value: a.browserMark("mallory")}
	for _, c := range []struct {
		browser      *visitor
		query, reads string
	}{
		{newVisitor(t, a), "&error=access_denied", "cancel the call in your client"},
		{mallory, "&error=access_denied", "cancel the call in your client"},
		{users, "&error=access_denied&iss=https://other.example", "still valid"},
		{users, "", "still valid"},
		{users, "&error=temporarily_unavailable", "still valid"},
		{users, "&error=server_error", "still valid"},
		{users, "&error=login_required", "still valid"},
		{newVisitor(t, a), "&error=login_required", "&#34;login_required&#34;"},
	} {
		w := c.browser.visit("/sign-in/user?state=" + c.browser.open(one) + c.query)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), c.reads)
		require.NotNil(t, a.links.get(one.id), "it still waits")
	}
	state := users.open(one)
	require.Equal(t, http.StatusBadRequest, mallory.visit("/sign-in/user?state="+state+"&error=access_denied").Code, "another browser")
	require.NotNil(t, a.links.get(one.id))
	require.Contains(t, users.visit("/sign-in/user?state="+state+"&error=access_denied").Body.String(), "the call of server notes has ended")
	<-one.done
	require.ErrorIs(t, one.err, accesstoken.ErrLoginRefused)
}

// Errors of the server's authorization server end the sign-in, unless they can be over when the user tries again.
func TestTemporaryErrorsLeaveTheLink(t *testing.T) {
	for code, ends := range map[string]bool{
		"temporarily_unavailable": false, "server_error": false, "login_required": false,
		"access_denied": true, "invalid_scope": true, "": true,
	} {
		a, one := waiting(t, false)
		browser := newVisitor(t, a)
		browser.cookies["C"] = &http.Cookie{Name: signInCookie + one.id, Value: "C"}
		w := browser.visit("/sign-in/callback?state=S&error=" + code)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Equal(t, ends, a.links.get(one.id) == nil, code)
		require.Equal(t, !ends, strings.Contains(w.Body.String(), "still valid"), code)
	}
}

// A program that opens the link, such as a mail scanner, and a second tab do not end the user's step.
func TestLinkIsOpenedSeveralTimes(t *testing.T) {
	a, one := waiting(t, true)
	usersIssuer(t, a)
	browser := newVisitor(t, a)
	states := []string{browser.open(one), browser.open(one)}
	for range 3 {
		states = append(states, newVisitor(t, a).open(one))
	}
	for i, state := range states {
		w := browser.visit("/sign-in/user?state=" + state + "&error=server_error")
		require.Equal(t, i < 2, strings.Contains(w.Body.String(), "server_error"), "%d: each browser answers its own steps", i)
	}

	// The number of steps is bounded. The step of a user who is known stays.
	a.links.registerStep("known", &browserStep{signIn: one, attempt: &oauth.Attempt{}})
	first := browser.open(one)
	for range 2 * maxSteps {
		newVisitor(t, a).open(one)
	}
	require.Len(t, a.links.byState, maxSteps)
	require.Contains(t, a.links.byState, "known")
	require.NotContains(t, a.links.byState, first)
}

// A later call gets a link that is valid long enough, and the expiry ends the wait.
func TestLaterCallGetsEnoughTime(t *testing.T) {
	a, one := waiting(t, true)
	soon := time.Now().Add(6 * time.Second)
	one.expires = soon
	again, err := a.links.open(one.cfg)
	require.NoError(t, err)
	require.Same(t, one, again)
	require.Greater(t, one.expires.Sub(soon), linkLifetime-time.Minute)
	same := one.expires
	_, err = a.links.open(one.cfg)
	require.NoError(t, err)
	require.Equal(t, same, one.expires, "not each call changes it")

	s := memory.New(memory.Config{})
	a.store = s
	a.storeLink(t.Context(), one)
	entry, err := s.Keys.Get(t.Context(), linkKey(one.id))
	require.NoError(t, err)
	one.expires = one.expires.Add(time.Hour)
	a.storeLink(t.Context(), one)
	later, err := s.Keys.Get(t.Context(), linkKey(one.id))
	require.NoError(t, err)
	require.Equal(t, time.Hour, later.Expires.Sub(entry.Expires))

	one.expires = time.Now().Add(20 * time.Millisecond)
	ended, err := a.links.wait(t.Context(), one)
	require.True(t, ended)
	require.ErrorContains(t, err, "not completed in time")

	other, err := a.links.open(one.cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended, err = a.links.wait(ctx, other)
	require.False(t, ended)
	require.NoError(t, err)
}
