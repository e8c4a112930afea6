package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// failingToken is an Authorizer whose provider answers only while down is false.
type failingToken struct {
	fixedToken
	down  atomic.Bool
	asked atomic.Int32
}

func (f *failingToken) Token(context.Context) (string, error) {
	f.asked.Add(1)
	if f.down.Load() {
		return "", errors.New("the provider does not answer")
	}
	return "token", nil
}

func (*failingToken) NeedsSignIn(error) bool { return false }
func (*failingToken) Changed() bool          { return false }

// No sign-in resolves an outage of the provider, so nothing asks for one. A connection that exists is
// used after it.
func TestOutageOfTheProvider(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	tools := faultserver.Handler("-json")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && req.Header.Get("Mcp-Session-Id") == "" {
			starts.Add(1)
		}
		tools.ServeHTTP(w, req)
	}))
	t.Cleanup(web.Close)
	open := func(auth upstream.Authorizer, era upstream.Era) *upstream.Server {
		spawner := upstream.NewSpawner(nil)
		t.Cleanup(spawner.Close)
		s, err := upstream.New(upstream.Config{Name: "web", URL: web.URL + "/mcp", Era: era, Auth: auth}, spawner)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return s
	}
	say := func(s *upstream.Server) error {
		_, err := s.Call(t.Context(), request("echo", `{"arguments":{"text":"hello"}}`))
		return err
	}
	refused := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "the provider does not answer")
		require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
	}

	var auth failingToken
	s := open(&auth, upstream.Legacy)
	require.NoError(t, say(s))
	begun := starts.Load()
	auth.down.Store(true)
	for range 3 {
		refused(say(s))
		require.Equal(t, upstream.Ready, s.Status().State)
	}
	auth.down.Store(false)
	require.NoError(t, say(s))
	require.Equal(t, begun, starts.Load(), "the connection was not replaced")

	var other failingToken
	other.down.Store(true)
	s = open(&other, upstream.Auto)
	for range 2 {
		refused(say(s))
		require.Contains(t, []upstream.State{upstream.Starting, upstream.Offline}, s.Status().State)
		require.True(t, s.Status().Last.IsOfToken())
		require.False(t, s.IsGivenUp())
		asked := other.asked.Load()
		require.LessOrEqual(t, int(asked), 1+s.Status().Restarts, "no other opening is tried: each asks the provider again")
	}
	other.down.Store(false)
	require.Eventually(t, func() bool { return say(s) == nil }, time.Minute, 10*time.Millisecond)
	require.Equal(t, upstream.Ready, s.Status().State, "the server was never unstable")
}

// A server that works after a sign-in is not unstable, although it refused the host before.
func TestServerAfterASignIn(t *testing.T) {
	t.Parallel()
	tools := faultserver.Handler("-json")
	var signedIn atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !signedIn.Load() {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		tools.ServeHTTP(w, req)
	}))
	t.Cleanup(web.Close)
	spawner := upstream.NewSpawner(nil)
	t.Cleanup(spawner.Close)
	s, err := upstream.New(upstream.Config{Name: "web", URL: web.URL + "/mcp", Auth: fixedToken("")}, spawner)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	_, err = s.Tools(t.Context())
	require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
	require.Equal(t, upstream.NeedsSignIn, s.Status().State)
	signedIn.Store(true)
	require.Eventually(t, func() bool { _, err := s.Tools(t.Context()); return err == nil }, time.Minute, 10*time.Millisecond)
	require.Equal(t, upstream.Ready, s.Status().State)
}
