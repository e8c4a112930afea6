package upstream_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// trickle writes a body that never ends.
func trickle(w http.ResponseWriter, r *http.Request, text string, pause time.Duration) {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		http.NewResponseController(w).Flush() //nolint:errcheck // the next write will tell
		time.Sleep(pause)
	}
}

// What a server says beside a refusal, however long, keeps nobody waiting for
// the refusal.
func TestARefusalWithoutEndIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		code   toolerr.Code
		want   string
	}{
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			trickle(w, r, strings.Repeat("on and on\n", 1000), 0)
		}, toolerr.TransportError, "500 Internal Server Error: on and on"},
		"trickling": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			trickle(w, r, "x", 50*time.Millisecond)
		}, toolerr.TransportError, "502 Bad Gateway"},
		"a line, and no end": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "come back later\nses") //nolint:errcheck // a test's
			trickle(w, r, "", 50*time.Millisecond)
		}, toolerr.TransportError, "503 Service Unavailable: come back later"},
		"said to be long": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.WriteHeader(http.StatusForbidden)
			trickle(w, r, "", 50*time.Millisecond)
		}, toolerr.AuthFailed, "403 Forbidden"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			trickle(w, r, "x", 50*time.Millisecond)
		}, toolerr.ServerOffline, "it redirects to http://elsewhere.example"},
		"part of a secret": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, "you sent sesame-op") //nolint:errcheck // a test's
			trickle(w, r, "", 50*time.Millisecond)
		}, toolerr.TransportError, "500 Internal Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := web(t, func(w http.ResponseWriter, r *http.Request, _, _ string) {
				c.answer(w, r)
			}, nil, func(c *upstream.Config) { c.Headers = map[string]secret.Text{"X-Key": "sesame-open"} })
			mustList(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := do(ctx, s, "t", `{}`)
			require.Equal(t, c.code, toolerr.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "sesame")
			require.Zero(t, s.Status().Restarts)
		})
	}
}
