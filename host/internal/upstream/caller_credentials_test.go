package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
)

// fixedToken is an Authorizer with one token; "": none.
type fixedToken string

func (f fixedToken) Token(context.Context) (string, error) { return string(f), nil }
func (f fixedToken) Refused(context.Context, string, int, []string) (bool, error) {
	return false, errors.New("sign in first")
}
func (f fixedToken) Sign(req *http.Request, token string) error {
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}
func (fixedToken) NeedsSignIn(error) bool         { return true }
func (f fixedToken) Received(*http.Response) bool { return false }
func (f fixedToken) Changed() bool                { return true }
func (f fixedToken) SignIn() string               { return "" }
func (f fixedToken) Secrets() []string            { return []string{string(f)} }
func (fixedToken) Close()                         {}

// Requests of a caller with own credentials have these, and never those of the host or
// of another caller.
func TestCallersWithTheirOwnCredentials(t *testing.T) {
	t.Parallel()
	tools := faultserver.Handler("-json")
	var mu sync.Mutex
	seen := map[string]string{} // token by session
	var refused []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token, session := req.Header.Get("Authorization"), req.Header.Get("Mcp-Session-Id")
		mu.Lock()
		if session != "" && seen[session] == "" {
			seen[session] = token
		}
		mixed := session != "" && seen[session] != token
		if token == "" || mixed || req.Header.Get("X-Helper") != "" && token != "Bearer host-key" {
			refused = append(refused, token)
			mu.Unlock()
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mu.Unlock()
		tools.ServeHTTP(w, req)
	}))
	t.Cleanup(web.Close)
	spawner := upstream.NewSpawner(nil)
	t.Cleanup(spawner.Close)
	s, err := upstream.New(upstream.Config{
		Name: "web", URL: web.URL + "/mcp", Era: upstream.Legacy, Token: "host-key",
		Headers:       map[string]secret.Text{"authorization": "Bearer host-header", "X-Tenant": "acme"},
		HeadersHelper: upstream.OneShot{Command: []string{"/bin/sh", "-c", `echo '{"X-Helper": "host-helper"}'`}, Env: os.Environ(), MaxOutput: 1 << 20},
		AuthFor: func(c call.Caller) (string, upstream.Authorizer, error) {
			switch c.User {
			case "":
				return "", nil, nil
			case "nobody":
				return "", nil, errors.New("who is that?")
			case "carol":
				return "carol", fixedToken(""), nil
			}
			return c.User, fixedToken(c.User + "-token"), nil
		},
	}, spawner)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	say := func(user, id string) error {
		req := request("echo", `{"arguments":{"text":"hello"}}`)
		req.Caller.User, req.Caller.ID = user, id
		_, err := s.Call(t.Context(), req)
		return err
	}
	_, ok := s.ToolsOfCallers()
	require.False(t, ok)
	var all sync.WaitGroup
	for range 5 {
		for _, user := range []string{"", "alice", "bob"} {
			for _, id := range []string{"1", "2"} {
				all.Go(func() { require.NoError(t, say(user, id)) })
			}
		}
	}
	all.Wait()
	require.Equal(t, 2, s.Status().Callers, "sessions of one user share a run")
	require.ErrorContains(t, say("nobody", "1"), "who is that?")
	require.ErrorContains(t, say("carol", "1"), "sign in first")
	mu.Lock()
	var tokens []string
	for _, token := range seen {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	require.Equal(t, []string{"Bearer alice-token", "Bearer bob-token", "Bearer host-key"}, slices.Compact(tokens))
	require.Equal(t, []string{""}, slices.Compact(refused), "carol's requests have no credentials of others")
	mu.Unlock()
	known, ok := s.ToolsOfCallers()
	require.True(t, ok)
	require.NotEmpty(t, known)
	listed, err := s.ListFor(t.Context(), call.Caller{User: "alice"})
	require.NoError(t, err)
	require.Equal(t, known, listed)
}
