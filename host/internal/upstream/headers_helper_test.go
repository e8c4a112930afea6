package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
)

// helped starts a server that accepts only the key that a helper prints, and
// returns the server and the number of runs of the helper.
func helped(t *testing.T, script string, accepts func(key string) bool) (s *upstream.Server, runs func() int) {
	if runtime.GOOS == "windows" {
		t.Skip("the helpers are shell scripts")
	}
	counter := filepath.Join(t.TempDir(), "runs")
	tools := faultserver.Handler("-json")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !accepts(req.Header.Get("X-Key")) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		tools.ServeHTTP(w, req)
	}))
	t.Cleanup(web.Close)
	spawner := upstream.NewSpawner(nil)
	t.Cleanup(spawner.Close)
	s, err := upstream.New(upstream.Config{
		Name: "web", URL: web.URL + "/mcp",
		HeadersHelper: upstream.OneShot{Command: []string{"/bin/sh", "-c", "echo run >> " + counter + "; " + script}, Env: os.Environ(), MaxOutput: 1 << 20},
	}, spawner)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, func() int {
		text, _ := os.ReadFile(counter) //nolint:errcheck // no run yet
		return strings.Count(string(text), "run")
	}
}

func TestHeadersHelper(t *testing.T) {
	s, runs := helped(t, `echo '{"X-Key": "secret-key", "Content-Type": "x/y"}'`, func(key string) bool { return key == "secret-key" })
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, tools)
	require.Equal(t, 1, runs(), "it is run once for a connection")
	require.Equal(t, "has ***", s.Redacted("has secret-key"))
}

// A key that has expired is replaced, and the request is repeated.
func TestHeadersHelperAfterRefusal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("first"), 0o600))
	var valid atomic.Value
	valid.Store("first")
	s, runs := helped(t, `echo "{\"X-Key\": \"$(cat `+file+`)\"}"`, func(key string) bool { return key == valid.Load() })
	_, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	valid.Store("second")
	_, err = s.Ping(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, runs())

	valid.Store("none")
	_, err = s.Ping(t.Context())
	require.Error(t, err, "a request is repeated once")
}

func TestHeadersHelperThatFails(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"status":       {`echo no login >&2; exit 4`, "no login"},
		"no JSON":      {`echo Bearer x`, "must print a JSON object of texts"},
		"null":         {`echo null`, "must print a JSON object of texts"},
		"numbers":      {`echo '{"a": 1}'`, "must print a JSON object of texts"},
		"large output": {`head -c 2000000 /dev/zero`, "it wrote more than"},
		"bad header":   {`printf '{"a\\nb": "c"}'`, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := helped(t, c.script, func(string) bool { return true })
			_, err := s.Tools(t.Context())
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A helper that hangs is killed after ten seconds, with what it started.
func TestHeadersHelperThatHangs(t *testing.T) {
	s, _ := helped(t, `sleep 1000 & sleep 1000`, func(string) bool { return true })
	begin := time.Now()
	_, err := s.Tools(t.Context())
	require.Error(t, err)
	require.NotEmpty(t, fmt.Sprint(err))
	require.Less(t, time.Since(begin), time.Minute, "it is killed")
}
