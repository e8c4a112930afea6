package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// site is an MCP server and its authorization server at one origin, with chosen answers.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	paths []string // that were requested
}

// newSite starts a server. answers are by path; BASE in them is the server's address. other
// answers all other requests.
func newSite(t *testing.T, answers map[string]string, other http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.paths = append(s.paths, req.Method+" "+req.URL.Path)
		s.mu.Unlock()
		text, ok := answers[req.URL.Path]
		if !ok {
			other(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.ReplaceAll(text, "BASE", s.URL)) //nolint:errcheck // the client reports it
	}))
	t.Cleanup(s.Close)
	return s
}

// prepareAt requests the metadata of a server, as a sign-in does.
func prepareAt(t *testing.T, base string) (serverMetadata, error) {
	f := flow{Config: Config{Server: "notes", URL: base + "/mcp", Storage: Storage{State: t.TempDir()}, Version: "test"}}
	f.client = f.newHTTP()
	err := f.prepare(t.Context())
	return f.server, err
}

const (
	oauthMetadata = "/.well-known/oauth-authorization-server"
	openIDConfig  = "/.well-known/openid-configuration"
	resourceAtMCP = "/.well-known/oauth-protected-resource/mcp"
	resourceAtTop = "/.well-known/oauth-protected-resource"

	validServer   = `{"issuer":"BASE","authorization_endpoint":"BASE/a","token_endpoint":"BASE/t","code_challenge_methods_supported":["S256"]}`
	validResource = `{"resource":"BASE/mcp","authorization_servers":["BASE"]}`
)

func withStatus(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// page answers as a single-page application does.
func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, "<html></html>") //nolint:errcheck // the client reports it
}

// object answers each path with a JSON object that is no metadata.
func object(w http.ResponseWriter, _ *http.Request) { writeJSON(w, map[string]any{"message": "hello"}) }

// A well-known address can have something else than metadata; then the next one is tried.
func TestDiscoveryGoesOn(t *testing.T) {
	for kind, other := range map[string]http.HandlerFunc{
		"pages": page, "objects": object, "status 500": withStatus(500), "status 503": withStatus(503), "status 404": withStatus(404),
	} {
		for name, answers := range map[string]map[string]string{
			"no resource metadata":           {oauthMetadata: validServer},
			"resource metadata at the root":  {resourceAtTop: `{"resource":"BASE","authorization_servers":["BASE"]}`, oauthMetadata: validServer},
			"OpenID Connect":                 {resourceAtMCP: validResource, openIDConfig: validServer},
			"OpenID Connect, without others": {openIDConfig: validServer},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				s := newSite(t, answers, other)
				m, err := prepareAt(t, s.URL)
				require.NoError(t, err)
				require.Equal(t, s.URL+"/t", m.TokenEndpoint)
			})
		}
	}
}

// Without any metadata, the addresses are those of version 2025-03-26 if nothing else is there;
// otherwise the error names the address and the document.
func TestDiscoveryWithoutMetadata(t *testing.T) {
	for kind, c := range map[string]struct {
		other http.HandlerFunc
		want  []string // in the error; BASE is the server
	}{
		"status 404": {withStatus(404), nil},
		"pages":      {page, []string{`the protected resource metadata at "BASE` + resourceAtMCP + `"`, `the metadata of the authorization server at "BASE` + oauthMetadata + `"`, `the type "text/html" instead of JSON`}},
		"objects":    {object, []string{`the metadata of the authorization server at "BASE` + oauthMetadata + `"`, "is something else"}},
		"status 500": {withStatus(500), []string{`the protected resource metadata at "BASE` + resourceAtMCP + `"`, "status 500"}},
	} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(t, nil, c.other)
			m, err := prepareAt(t, s.URL)
			if c.want == nil {
				require.NoError(t, err)
				require.Equal(t, s.URL+"/token", m.TokenEndpoint)
				return
			}
			for _, want := range c.want {
				require.ErrorContains(t, err, strings.ReplaceAll(want, "BASE", s.URL))
			}
		})
	}
}

// No address is guessed at an authorization server that resource metadata name.
func TestNamedIssuerWithoutMetadata(t *testing.T) {
	s := newSite(t, map[string]string{resourceAtMCP: validResource}, withStatus(404))
	_, err := prepareAt(t, s.URL)
	require.EqualError(t, err, fmt.Sprintf("the authorization server %q has no metadata", s.URL))
	require.NotContains(t, s.paths, "POST /register")
}

// unreachable returns the address of a server that ends each connection without an answer.
func unreachable(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	return server.URL
}

func TestSecondAuthorizationServer(t *testing.T) {
	away := unreachable(t)
	for name, c := range map[string]struct {
		first string // BASE is the MCP server's origin
		want  string // the error
	}{
		"unreachable":    {away, ""},
		"no metadata":    {"BASE/none", ""},
		"not encrypted":  {"http://auth.example.com", "is not encrypted"},
		"another issuer": {"BASE/other", "names another issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, map[string]string{
				resourceAtMCP: `{"resource":"BASE/mcp","authorization_servers":["` + c.first + `","BASE"]}`,
				oauthMetadata: validServer, oauthMetadata + "/other": validServer,
			}, withStatus(404))
			m, err := prepareAt(t, s.URL)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, s.URL+"/t", m.TokenEndpoint)
		})
	}
	s := newSite(t, map[string]string{resourceAtMCP: `{"resource":"BASE/mcp","authorization_servers":["` + away + `","BASE"]}`}, withStatus(404))
	_, err := prepareAt(t, s.URL)
	require.ErrorContains(t, err, "cannot reach "+strings.TrimPrefix(away, "http://"))
	require.ErrorContains(t, err, fmt.Sprintf("the authorization server %q has no metadata", s.URL))
}
