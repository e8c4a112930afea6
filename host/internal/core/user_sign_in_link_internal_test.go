package core

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
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
