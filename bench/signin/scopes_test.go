//go:build oracle

package signin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// demandScope returns a handler that refuses calls of the tool echo whose token lacks a
// scope, as the specification says for insufficient scopes at run time.
func demandScope(next http.Handler, scope string, has func(token string) []string, refused *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		tool, _, err := readToolCall(in)
		if err != nil {
			return
		}
		token, ok := strings.CutPrefix(in.Header.Get("Authorization"), "Bearer ")
		if ok && tool == "echo" {
			if scopes := has(token); len(scopes) > 0 && !slices.Contains(scopes, scope) {
				refused.Add(1)
				out.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q, resource_metadata="http://%s/.well-known/oauth-protected-resource/mcp", error_description="echo writes"`, scope, in.Host))
				out.WriteHeader(http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(out, in)
	})
}

// readToolCall reads the body of a request, which can be read again afterwards, and returns
// the name and the argument text of the tool call in it; "" for another message.
func readToolCall(in *http.Request) (tool, text string, err error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return "", "", err
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	var call struct {
		Method string
		Params struct {
			Name      string
			Arguments struct{ Text string }
		}
	}
	if json.Unmarshal(body, &call) != nil || call.Method != "tools/call" {
		return "", "", nil
	}
	return call.Params.Name, call.Params.Arguments.Text, nil
}

// scopesAt returns the function that asks an issuer for the scopes of a token.
func scopesAt(issuer func() string) func(token string) []string {
	return func(token string) []string {
		req, err := http.NewRequest(http.MethodPost, issuer()+"/token/introspection", strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			return nil
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth("resource", "resource-secret")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil
		}
		defer res.Body.Close() //nolint:errcheck // read only
		var got struct{ Scope string }
		if json.NewDecoder(res.Body).Decode(&got) != nil {
			return nil
		}
		return strings.Fields(got.Scope)
	}
}

// replaceable is a handler that can be replaced while its server runs.
type replaceable struct {
	current atomic.Pointer[http.Handler]
}

// set replaces the handler.
func (r *replaceable) set(h http.Handler) { r.current.Store(&h) }

// ServeHTTP implements http.Handler.
func (r *replaceable) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	(*r.current.Load()).ServeHTTP(out, in)
}

// newServer starts a server whose handler replaceHandler can replace.
func newServer(h http.Handler) *httptest.Server {
	r := &replaceable{}
	r.set(h)
	return httptest.NewServer(r)
}

// replaceHandler puts a handler before that of a server of newServer.
func replaceHandler(t *testing.T, s *httptest.Server, with func(http.Handler) http.Handler) {
	t.Helper()
	r, ok := s.Config.Handler.(*replaceable)
	require.True(t, ok)
	r.set(with(*r.current.Load()))
}

// scopesOf returns the scopes that a link asks for.
func scopesOf(t *testing.T, link string) []string {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	return strings.Fields(u.Query().Get("scope"))
}

// A call that needs more scopes sends the link to consent to them, with the scopes of
// before, and continues after it.
func TestMoreScopesByLink(t *testing.T) {
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			var refused atomic.Int32
			replaceHandler(t, w.mcp, func(next http.Handler) http.Handler {
				return demandScope(next, "write", scopesAt(func() string { return w.issuer }), &refused)
			})
			got := w.visit(s, "notes__toolroom_sign_in", "notes__echo", "notes__echo")
			require.Len(t, got.Links, 2)
			require.Contains(t, scopesOf(t, got.Links[0].URL), "read")
			require.NotContains(t, scopesOf(t, got.Links[0].URL), "write")
			require.Subset(t, scopesOf(t, got.Links[1].URL), []string{"read", "write"})
			require.Contains(t, got.Links[1].Message, `Server notes needs a sign-in with more scopes (write)`)
			for i, want := range []string{"Signed in to server notes", "hello", "hello"} {
				require.Empty(t, got.Results[i].Thrown)
				require.False(t, got.Results[i].IsError, got.Results[i])
				require.Contains(t, got.Results[i].Content[0].Text, want)
			}
			require.EqualValues(t, 1, refused.Load())
			require.Contains(t, w.succeeds("config", "check"), "scopes read write")
			require.Zero(t, w.events()["grant.revoked"])
		})
	}
}

// The error for a client that cannot open links names the command; its sign-in asks for the scopes.
func TestMoreScopesByCommand(t *testing.T) {
	w := newWorld(t, "")
	var refused atomic.Int32
	replaceHandler(t, w.mcp, func(next http.Handler) http.Handler {
		return demandScope(next, "write", scopesAt(func() string { return w.issuer }), &refused)
	})
	w.succeeds("login", "notes")
	out, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, `needs a sign-in with more scopes (write): run mcp-host login notes`)
	require.Contains(t, w.succeeds("config", "check"), "scopes missing: write")
	require.Contains(t, w.succeeds("login", "notes"), "scopes read write")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
}

// A server that demands another scope after each sign-in does not make the user sign in
// for ever.
func TestScopesWithoutEnd(t *testing.T) {
	s := sessions["SDK 1"]
	w := newWorld(t, "")
	var refused atomic.Int32
	replaceHandler(t, w.mcp, func(next http.Handler) http.Handler {
		return demandScope(next, "admin", scopesAt(func() string { return w.issuer }), &refused)
	})
	got := w.visit(s, "notes__toolroom_sign_in", "notes__echo", "notes__echo", "notes__echo", "notes__echo")
	require.LessOrEqual(t, len(got.Links), 3)
	for _, result := range got.Results[1:] {
		require.True(t, result.IsError)
	}
}

// A user of serve gets the link on the host's door.
func TestMoreScopesOfAUser(t *testing.T) {
	for name, v := range visitors {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, "jwt", true, "credentials: caller")
			var refused atomic.Int32
			replaceHandler(t, w.behind, func(next http.Handler) http.Handler {
				return demandScope(next, "write", scopesAt(func() string { return w.provider }), &refused)
			})
			v.Token, v.Text, v.Links, v.Calls = w.token("alice"), "from alice", true, []string{"notes__toolroom_sign_in", "notes__echo", "notes__echo"}
			got := w.visit("alice", v)
			require.Len(t, got.Links, 2)
			require.True(t, strings.HasPrefix(got.Links[1].URL, w.url+"/sign-in/"), got.Links[1].URL)
			require.Contains(t, got.Links[1].Message, `more scopes (write)`)
			got.requireText(t, 1, "from alice")
			got.requireText(t, 2, "from alice")
			require.EqualValues(t, 1, refused.Load())
			require.Equal(t, []string{"alice: from alice", "alice: from alice"}, w.calls())
		})
	}
}
