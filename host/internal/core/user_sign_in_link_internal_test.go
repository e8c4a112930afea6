package core

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// waiting returns a host with a sign-in that waits for an answer with the state S from
// the browser with the cookie C. login says that it is the answer of the users' issuer.
func waiting(t *testing.T, login bool) (*App, *userSignIn) {
	t.Helper()
	a := &App{Config: config.Config{Auth: &accesstoken.Config{URL: "https://tools.example.com"}}}
	one, err := a.links.open(oauth.Config{Server: "notes", URL: "https://notes.example.com", Storage: oauth.Storage{State: t.TempDir()}, Subject: "alice"})
	require.NoError(t, err)
	step := &browserStep{signIn: one, cookie: sha256.Sum256([]byte("C"))}
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
	require.Len(t, a.links.byState, 1, "the link was opened again")
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

// deletions are the keys of a store that notes deletions.
type deletions struct {
	store.Keys
	on func(key string)
}

func (d deletions) Delete(_ context.Context, key string, _ store.Version) error {
	d.on(key)
	return nil
}

// A call goes on after its link was deleted, also from the store.
func TestLinkIsDeletedBeforeTheCallGoesOn(t *testing.T) {
	a, one := waiting(t, false)
	var deleted []string
	a.store = &store.Store{Keys: deletions{on: func(key string) {
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
}

// A user who refuses at the issuer of the users ends the wait of the call. An answer of another browser
// does not.
func TestRefusalAtTheIssuerEndsTheSignIn(t *testing.T) {
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, //nolint:errcheck // the test fails then
			issuer.URL, issuer.URL+"/authorize", issuer.URL+"/token", issuer.URL+"/keys")
	}))
	defer issuer.Close()
	a, one := waiting(t, true)
	v, err := accesstoken.New(accesstoken.Config{Issuer: issuer.URL, URL: "https://tools.example.com", ClientID: "host"})
	require.NoError(t, err)
	a.SetIssuer(v)
	login, _, err := v.BeginLogin(t.Context(), a.signInURL("user"))
	require.NoError(t, err)
	answer := func(cookie, query string) int {
		a.links.registerStep(login.State(), &browserStep{signIn: one, cookie: sha256.Sum256([]byte("C")), login: login})
		r := httptest.NewRequest(http.MethodGet, "/sign-in/user?state="+login.State()+query, nil)
		r.AddCookie(&http.Cookie{Name: signInCookie + one.id, Value: cookie})
		w := httptest.NewRecorder()
		a.SignInPages().ServeHTTP(w, r)
		return w.Code
	}
	for query, cookie := range map[string]string{"&error=access_denied": "D", "&error=access_denied&iss=https://other.example": "C", "": "C"} {
		require.Equal(t, http.StatusBadRequest, answer(cookie, query))
		require.NotNil(t, a.links.get(one.id), "it still waits")
	}
	require.Equal(t, http.StatusBadRequest, answer("C", "&error=access_denied"))
	<-one.done
	require.ErrorIs(t, one.err, accesstoken.ErrLoginRefused)
}
