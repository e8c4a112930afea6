package core

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// A browser in which the user has signed in at the users' issuer gets a mark, and another user's does not.
func TestBrowserOfAUserIsMarked(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	var issuer *httptest.Server
	var nonce, subject string
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/keys":
			answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: private.Public(), KeyID: "1", Algorithm: string(jose.ES256), Use: "sig"}}}
		case "/token":
			answer = map[string]string{"id_token": signed(t, private, map[string]any{
				"iss": issuer.URL, "aud": "host", "sub": subject, "nonce": nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
			})}
		default:
			answer = map[string]string{"issuer": issuer.URL, "authorization_endpoint": issuer.URL + "/authorize", "token_endpoint": issuer.URL + "/token", "jwks_uri": issuer.URL + "/keys"}
		}
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // the test fails then
	}))
	defer issuer.Close()
	a := &App{Config: config.Config{Auth: &accesstoken.Config{URL: "https://tools.example.com"}}}
	v, err := accesstoken.New(accesstoken.Config{Issuer: issuer.URL, URL: "https://tools.example.com", ClientID: "host"})
	require.NoError(t, err)
	a.SetIssuer(v)
	alice := issuer.URL + "\nalice"
	for subject = range map[string]bool{"alice": true, "mallory": true} {
		one, err := a.links.open(oauth.Config{Server: "notes", URL: "http://127.0.0.1:1/mcp", Storage: oauth.Storage{State: t.TempDir(), Kind: oauth.InFile}, Subject: alice, SignInLink: true})
		require.NoError(t, err)
		browser := newVisitor(t, a)
		to, err := browser.visit("/sign-in/" + one.id).Result().Location()
		require.NoError(t, err)
		nonce = to.Query().Get("nonce")
		w := browser.visit("/sign-in/user?code=c&state=" + to.Query().Get("state"))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if mark := browser.cookies[userCookie]; mark != nil {
			require.True(t, mark.Secure && mark.HttpOnly)
			r.AddCookie(mark)
		}
		if subject == "alice" {
			require.Equal(t, http.StatusBadGateway, w.Code, "the server does not answer: %s", w.Body)
			require.True(t, a.isBrowserOf(r, alice))
			require.False(t, a.isBrowserOf(r, issuer.URL+"\nmallory"))
			continue
		}
		require.Equal(t, http.StatusForbidden, w.Code, w.Body)
		require.NotContains(t, browser.cookies, userCookie)
	}
}

// signed returns a JSON Web Token.
func signed(t *testing.T, private *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	require.NoError(t, err)
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	token, err := signer.Sign(text)
	require.NoError(t, err)
	compact, err := token.CompactSerialize()
	require.NoError(t, err)
	return compact
}
