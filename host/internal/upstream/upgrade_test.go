package upstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// A server that answers every request by handing over its connection, and
// keeps that, is one that cannot be reached: nothing waits for it for ever.
func TestAServerThatUpgrades(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") //nolint:errcheck // a test's
		io.Copy(io.Discard, conn)                                                                             //nolint:errcheck // until the client goes
	}))
	defer web.Close()
	spawner := upstream.NewSpawner(nil)
	defer spawner.Close()
	for _, transport := range []upstream.Transport{upstream.StreamableHTTP, upstream.SSE} {
		s, err := upstream.New(upstream.Config{Name: "s", URL: web.URL, Transport: transport, AllowPrivate: true}, spawner)
		require.NoError(t, err)
		_, err = s.Tools(t.Context())
		require.Error(t, err)
		if transport == upstream.StreamableHTTP { // the other looks for its stream alone
			require.ErrorContains(t, err, "another protocol")
		}
		s.Close()
	}
}
