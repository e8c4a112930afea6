package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const userIDToken = "users.id.token"

// enterprise starts an identity provider that answers an exchange, and returns its
// address and the requests.
func enterprise(t *testing.T, metadata map[string]any, answer map[string]any) (issuer string, forms *[]url.Values) {
	t.Helper()
	forms = &[]url.Values{}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/.well-known/openid-configuration":
			doc := map[string]any{"issuer": server.URL, "token_endpoint": server.URL + "/token"}
			for name, value := range metadata {
				doc[name] = value
			}
			writeJSON(w, doc)
		case "/token":
			id, key, _ := req.BasicAuth()
			req.ParseForm() //nolint:errcheck // a malformed form has no values
			req.Form.Set("basic", id+":"+key)
			*forms = append(*forms, req.Form)
			writeJSON(w, answer)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, forms
}

func assertionOf(t *testing.T, p *provider, issuer string) Config {
	c := p.config()
	c.Grant, c.ClientID, c.ClientSecret, c.AssertionFile = IDJAG, "host", "s", filepath.Join(t.TempDir(), "id")
	c.IdentityProvider = IdentityProvider{Issuer: issuer, ClientID: "host-at-idp", ClientSecret: "key"}
	require.NoError(t, os.WriteFile(c.AssertionFile, []byte(userIDToken+"\n"), 0o600))
	return c
}

func TestEnterpriseManagedAuthorization(t *testing.T) {
	issuer, forms := enterprise(t, nil, map[string]any{"access_token": "a.jag.x", "issued_token_type": idJAGType, "token_type": "N_A"})
	p := newProvider(t)
	c := assertionOf(t, p, issuer)
	token, err := NewSource(c).refreshOrReread(t.Context(), "", true)
	require.NoError(t, err)
	require.Equal(t, "access-1", token.Access)
	require.Equal(t, []url.Values{{
		"basic": {"host-at-idp:key"}, "grant_type": {exchangeGrant}, "subject_token": {userIDToken}, "subject_token_type": {idTokenType},
		"requested_token_type": {idJAGType}, "audience": {p.auth.URL}, "resource": {p.mcp.URL + "/mcp"}, "scope": {"read"},
	}}, *forms)
	require.Len(t, p.forms, 1)
	require.Equal(t, "urn:ietf:params:oauth:grant-type:jwt-bearer", p.forms[0].Get("grant_type"))
	require.Equal(t, "a.jag.x", p.forms[0].Get("assertion"))
}

// The ID token is sent to the identity provider only, and only its identity assertion to
// the authorization server.
func TestIdentityAssertionsThatAreRefused(t *testing.T) {
	for want, c := range map[string]struct{ metadata, answer map[string]any }{
		"names another issuer":                 {map[string]any{"issuer": "https://evil.example"}, nil},
		"only https is allowed":                {map[string]any{"token_endpoint": "http://evil.example/token"}, nil},
		"the token endpoint is not an address": {map[string]any{"token_endpoint": "file:///etc/passwd"}, nil},
		"not an identity":                      {nil, map[string]any{"access_token": "a.jag.x", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}},
		"no identity assertion":                {nil, map[string]any{"access_token": userIDToken, "issued_token_type": idJAGType}},
		"sent no identity asser":               {nil, map[string]any{"access_token": "opaque", "issued_token_type": idJAGType}},
	} {
		t.Run(want, func(t *testing.T) {
			issuer, _ := enterprise(t, c.metadata, c.answer)
			p := newProvider(t)
			_, err := NewSource(assertionOf(t, p, issuer)).refreshOrReread(t.Context(), "", true)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), userIDToken)
			require.Zero(t, p.count())
		})
	}
}
