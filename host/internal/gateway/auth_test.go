package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// users is the sign-in of a test: each token is the name of its user.
type users struct {
	mu      sync.Mutex
	expires map[string]time.Time
}

func (u *users) verify(_ context.Context, token string) (*accesstoken.User, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	user := &accesstoken.User{Name: token, Expires: time.Now().Add(time.Hour)}
	if at, ok := u.expires[token]; ok {
		user.Expires = at
	}
	switch token {
	case "alice":
		return user, nil
	case "bob", "short":
		user.Profiles = []string{"few"}
		return user, nil
	case "poor":
		return nil, &accesstoken.Error{Code: "insufficient_scope", Reason: `lacks "tools"`, Scopes: []string{"tools"}}
	case "unlucky":
		return nil, errors.New("the issuer is away")
	}
	return nil, &accesstoken.Error{Code: "invalid_token", Reason: "expired"}
}

// serveUsers is serve with the sign-in of users. called gets each caller.
func serveUsers(t *testing.T, own string) (d door, called func() []call.Caller) {
	t.Helper()
	var mu sync.Mutex
	var callers []call.Caller
	all := fixtures()
	g, err := gateway.New(gateway.Config{
		Name: "toolroom", Version: "1",
		Profile: func(name string) (gateway.Catalog, bool) {
			return tools{"echo": all["params"]}, name == "few" || name == "other"
		},
	}, all, func(ctx context.Context, req *call.Request) (*call.Result, error) {
		mu.Lock()
		callers = append(callers, req.Caller)
		mu.Unlock()
		return all["params"](ctx, req)
	})
	require.NoError(t, err)
	sign := &users{expires: map[string]time.Time{"short": time.Now().Add(300 * time.Millisecond)}}
	d = serveWith(t, g, gateway.HTTPConfig{
		Token: own, Auth: &gateway.Auth{Verify: sign.verify, Issuer: "https://login.example.com", URL: "https://tools.example.com/", Scopes: []string{"tools"}},
		Metrics: func(w io.Writer) error { _, err := io.WriteString(w, "metrics\n"); return err }, MetricsType: "text/plain",
	})
	return d, func() []call.Caller {
		mu.Lock()
		defer mu.Unlock()
		return append([]call.Caller{}, callers...)
	}
}

func as(user string) []string { return []string{"Authorization", "Bearer " + user} }

// get sends a request without a body.
func (d door) get(t *testing.T, method, path string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.URL+path, nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "text/event-stream")
	set(req, headers)
	return d.do(t, req)
}

const opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func TestWhereUsersSignIn(t *testing.T) {
	d, _ := serveUsers(t, "")
	for path, resource := range map[string]string{"": "", "/mcp": "/mcp", "/mcp/few": "/mcp/few", "/mcp/unknown": "/mcp/unknown"} {
		status, body, _ := d.get(t, "GET", "/.well-known/oauth-protected-resource"+path)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"resource":"https://tools.example.com`+resource+`","authorization_servers":["https://login.example.com"],
			"scopes_supported":["tools"],"bearer_methods_supported":["header"],"resource_name":"toolroom"}`, body)
	}
	for _, path := range []string{"/v1/tools", "/mcp/", "/mcp/a/b", "/mcp/%22", "x"} {
		status, _, _ := d.get(t, "GET", "/.well-known/oauth-protected-resource"+path)
		require.Equal(t, 404, status, path)
	}
	status, _, _ := d.get(t, "DELETE", "/.well-known/oauth-protected-resource")
	require.Equal(t, 405, status)
	status, _, _ = d.get(t, "GET", "/.well-known/oauth-protected-resource", "Host", "evil.example")
	require.Equal(t, 403, status)
	status, _, _ = d.post(t, opening, "Authorization", "Bearer alice", "Origin", "https://tools.example.com")
	require.Equal(t, 200, status)
	status, _, _ = serve(t, open(t, fixtures())).get(t, "GET", "/.well-known/oauth-protected-resource")
	require.Equal(t, 401, status, "without sign-in nothing is told")
}

func TestChallenges(t *testing.T) {
	d, called := serveUsers(t, "")
	const metadata = `Bearer realm="toolroom", resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource`
	for name, c := range map[string]struct {
		path, auth string
		status     int
		challenge  string
	}{
		"no token":               {"/mcp", "", 401, metadata + `/mcp", scope="tools"`},
		"a profile's address":    {"/mcp/few", "", 401, metadata + `/mcp/few", scope="tools"`},
		"another address":        {"/metrics", "", 401, metadata + `/mcp", scope="tools"`},
		"a quote in the path":    {"/mcp/%22x", "", 401, metadata + `/mcp", scope="tools"`},
		"a bad token":            {"/mcp", "Bearer x", 401, metadata + `/mcp", error="invalid_token", error_description="expired", scope="tools"`},
		"another scheme":         {"/mcp", "Basic alice", 401, metadata + `/mcp", scope="tools"`},
		"too few scopes":         {"/mcp", "Bearer poor", 403, metadata + `/mcp", error="insufficient_scope", error_description="lacks 'tools'", scope="tools"`},
		"an issuer that is away": {"/mcp", "Bearer unlucky", 503, ""},
		"a user's metrics":       {"/metrics", "Bearer alice", 403, ""},
		"a user's API":           {"/v1/tools", "Bearer alice", 403, ""},
		"a profile not theirs":   {"/mcp/other", "Bearer bob", 404, ""},
	} {
		status, body, header := d.get(t, "GET", c.path, "Authorization", c.auth)
		require.Equal(t, c.status, status, "%s: %s", name, body)
		require.Equal(t, c.challenge, header.Get("WWW-Authenticate"), name)
	}
	require.Empty(t, called())
}

func TestUsersAreKeptApart(t *testing.T) {
	d, called := serveUsers(t, token)
	enter := func(user string) string {
		status, body, header := d.post(t, opening, as(user)...)
		require.Equal(t, 200, status, body)
		require.NotEmpty(t, header.Get("Mcp-Session-Id"))
		return header.Get("Mcp-Session-Id")
	}
	alice, bob, owner := enter("alice"), enter("bob"), enter(token)
	list := func(user, session string, more ...string) (int, []string) {
		status, body, _ := d.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, append(append(as(user), "Mcp-Session-Id", session), more...)...)
		var answer struct {
			Result struct{ Tools []struct{ Name string } }
		}
		_ = json.Unmarshal([]byte(body[strings.IndexByte(body, '{'):]), &answer)
		var names []string
		for _, one := range answer.Result.Tools {
			names = append(names, one.Name)
		}
		return status, names
	}
	for _, c := range [][2]string{{"alice", alice}, {"bob", bob}, {token, owner}} {
		status, names := list(c[0], c[1])
		require.Equal(t, 200, status)
		require.NotEmpty(t, names)
	}
	for _, c := range [][2]string{{"bob", alice}, {"alice", bob}, {"alice", owner}, {token, alice}, {"alice", "invented"}} {
		status, names := list(c[0], c[1])
		require.Equal(t, 404, status, c)
		require.Empty(t, names)
		for _, method := range []string{"GET", "DELETE"} {
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				status, _, _ = d.get(t, method, "/mcp", append(as(c[0]), "Mcp-Session-Id", c[1], "Mcp-Protocol-Version", version)...)
				require.Equal(t, 404, status, "%s %s", method, c)
			}
		}
	}
	_, names := list("alice", alice)
	require.NotEmpty(t, names, "the session is still open")

	use := func(user, session, tool string) string {
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"`+tool+`"}}`, append(as(user), "Mcp-Session-Id", session)...)
		return body
	}
	require.Contains(t, use("bob", bob, "params"), "error", "not of the profile at bob's /mcp")
	require.Empty(t, called())
	use("alice", alice, "params")
	use("bob", bob, "echo")
	use(token, owner, "params")
	body, headers := modern(4, "tools/call", "params", `"name":"params"`, `{}`)
	status, text, _ := d.post(t, body, append(headers, as("alice")...)...)
	require.Equal(t, 200, status, text)
	var who [][3]string
	for _, c := range called() {
		who = append(who, [3]string{c.User, c.Account, c.Profile})
	}
	require.Equal(t, [][3]string{{"alice", "user alice", ""}, {"bob", "user bob", "few"}, {"", "http loopback", ""}, {"alice", "user alice", ""}}, who)
	require.Contains(t, called()[3].ID, "alice", "of one connection, users are different clients")

	status, text, _ = d.get(t, "GET", "/metrics", as(token)...)
	require.Equal(t, 200, status, text)
	status, _, _ = d.get(t, "DELETE", "/mcp", append(as("alice"), "Mcp-Session-Id", alice)...)
	require.Equal(t, 200, status)
}

// TestStreamsEndWithTheToken: the stream of a session ends when the token with
// which it was opened expires.
func TestStreamsEndWithTheToken(t *testing.T) {
	d, _ := serveUsers(t, "")
	_, _, header := d.post(t, opening, as("short")...)
	done := make(chan int, 1)
	go func() {
		status, _, _ := d.get(t, "GET", "/mcp", append(as("short"), "Mcp-Session-Id", header.Get("Mcp-Session-Id"))...)
		done <- status
	}()
	select {
	case status := <-done:
		require.Equal(t, 200, status)
	case <-time.After(20 * time.Second):
		t.Fatal("the stream goes on")
	}
}
