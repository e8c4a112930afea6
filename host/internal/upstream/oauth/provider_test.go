package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// provider is an MCP server that requires a sign-in, and its authorization
// server. The functions change what they send.
type provider struct {
	t         *testing.T
	mcp, auth *httptest.Server

	resource func(map[string]any)                          // changes the protected resource metadata
	metadata func(map[string]any)                          // changes the authorization server's metadata
	redirect func(url.Values)                              // changes the parameters of the redirect
	token    func(http.ResponseWriter, *http.Request) bool // answers a request for tokens, if it returns true

	onDevice     func(*http.Request)                           // gets the request for a device code
	revocation   func(http.ResponseWriter, *http.Request) bool // answers a revocation, if it returns true
	device       func(map[string]any)                          // changes the answer to a request for a device code
	registration map[string]any                                // added to the answer to a registration

	browsers   sync.WaitGroup
	mu         sync.Mutex
	pages      []string    // that browsers ended at: status and text
	header     http.Header // of the last page
	challenge  string      // of PKCE
	refresh    string      // the only valid refresh token
	issued     int         // pairs of tokens
	refreshed  int
	forms      []url.Values // requests for tokens
	revoked    []string
	registered []any    // application types
	allowed    []string // scopes of the last registration
	strict     bool     // refuses other scopes
	expires    int      // seconds until an access token expires
}

func newProvider(t *testing.T) *provider {
	p := &provider{t: t, expires: 3600}
	t.Cleanup(p.browsers.Wait)
	auth := http.NewServeMux()
	auth.HandleFunc("/.well-known/oauth-authorization-server", p.serveMetadata)
	auth.HandleFunc("/.well-known/oauth-authorization-server/common/v2.0", p.serveMetadata)
	auth.HandleFunc("/authorize", p.serveAuthorize)
	auth.HandleFunc("/token", p.serveToken)
	auth.HandleFunc("/device", func(w http.ResponseWriter, req *http.Request) {
		if p.onDevice != nil {
			req.ParseForm() //nolint:errcheck // a malformed form has no values
			p.onDevice(req)
		}
		doc := map[string]any{"device_code": "d", "user_code": "ABCD", "verification_uri": p.auth.URL + "/enter", "expires_in": 60, "interval": 0}
		if p.device != nil {
			p.device(doc)
		}
		writeJSON(w, doc)
	})
	auth.HandleFunc("/register", func(w http.ResponseWriter, req *http.Request) {
		var asked map[string]any
		if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		p.registered = append(p.registered, asked["application_type"])
		scope, _ := asked["scope"].(string)
		p.allowed = strings.Fields(scope)
		p.mu.Unlock()
		doc := map[string]any{"client_id": "registered"}
		maps.Copy(doc, p.registration)
		writeJSON(w, doc)
	})
	auth.HandleFunc("/revoke", func(w http.ResponseWriter, req *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.revocation != nil && p.revocation(w, req) {
			return
		}
		p.revoked = append(p.revoked, req.FormValue("token"))
	})
	p.auth = httptest.NewServer(auth)
	t.Cleanup(p.auth.Close)

	mcp := http.NewServeMux()
	mcp.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer scope="read"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	mcp.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		doc := map[string]any{"resource": p.mcp.URL + "/mcp", "authorization_servers": []string{p.auth.URL}}
		if p.resource != nil {
			p.resource(doc)
		}
		writeJSON(w, doc)
	})
	p.mcp = httptest.NewServer(mcp)
	t.Cleanup(p.mcp.Close)
	return p
}

func writeJSON(w http.ResponseWriter, doc map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(doc) //nolint:errcheck // the client reports it
}

func (p *provider) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	doc := map[string]any{
		"issuer": p.auth.URL, "authorization_endpoint": p.auth.URL + "/authorize", "token_endpoint": p.auth.URL + "/token",
		"registration_endpoint": p.auth.URL + "/register", "revocation_endpoint": p.auth.URL + "/revoke",
		"device_authorization_endpoint": p.auth.URL + "/device", "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true,
	}
	if p.metadata != nil {
		p.metadata(doc)
	}
	writeJSON(w, doc)
}

func (p *provider) serveAuthorize(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	p.mu.Lock()
	p.challenge = query.Get("code_challenge")
	p.mu.Unlock()
	answer := url.Values{"code": {"c"}, "state": {query.Get("state")}, "iss": {p.auth.URL}}
	if p.strict && !containsAll(p.allowed, strings.Fields(query.Get("scope"))) {
		answer.Set("error", "invalid_scope")
		answer.Del("code")
	}
	if p.redirect != nil {
		p.redirect(answer)
	}
	http.Redirect(w, req, query.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

// serveToken checks PKCE and accepts each refresh token once.
func (p *provider) serveToken(w http.ResponseWriter, req *http.Request) {
	req.ParseForm() //nolint:errcheck // a malformed form has no values
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forms = append(p.forms, req.Form)
	if p.token != nil && p.token(w, req) {
		return
	}
	refused := false
	switch req.FormValue("grant_type") {
	case "authorization_code":
		hash := sha256.Sum256([]byte(req.FormValue("code_verifier")))
		refused = base64.RawURLEncoding.EncodeToString(hash[:]) != p.challenge
	case "refresh_token":
		refused = req.FormValue("refresh_token") != p.refresh
		p.refreshed++
	}
	if refused {
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{"error": "invalid_grant"})
		return
	}
	p.issued++
	p.refresh = fmt.Sprint("refresh-", p.issued)
	writeJSON(w, map[string]any{"access_token": fmt.Sprint("access-", p.issued), "token_type": "Bearer", "refresh_token": p.refresh, "expires_in": p.expires})
}

// config returns the settings of the MCP server with a new state directory.
func (p *provider) config() Config {
	return Config{Server: "notes", URL: p.mcp.URL + "/mcp", Storage: Storage{State: p.t.TempDir()}, Version: "test"}
}

// browse opens the authorization address as a browser would, and does not wait for the page.
func (p *provider) browse(address string) error {
	p.browsers.Go(func() {
		res, err := http.Get(address)
		if err != nil {
			return // the sign-in tells it
		}
		text, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.header, p.pages = res.Header, append(p.pages, fmt.Sprintf("%d %s", res.StatusCode, text))
		}
	})
	return nil
}

func (p *provider) login(c Config) (SignInStatus, error) {
	return Login(p.t.Context(), c, Prompt{Open: p.browse})
}

// signedIn returns a configuration with tokens.
func (p *provider) signedIn() Config {
	p.t.Helper()
	c := p.config()
	_, err := p.login(c)
	require.NoError(p.t, err)
	return c
}

// count returns the number of requests for tokens.
func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.forms)
}
