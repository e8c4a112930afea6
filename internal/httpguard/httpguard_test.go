package httpguard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/httpguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestAnUpgradeIsAnError(t *testing.T) {
	held := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/ok" {
			io.WriteString(w, "ok") //nolint:errcheck // a test's
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") //nolint:errcheck // a test's
		io.Copy(io.Discard, conn)                                                                             //nolint:errcheck // until the client goes
		held <- struct{}{}
	}))
	defer s.Close()
	client := &http.Client{Transport: httpguard.RefuseUpgrades(&http.Transport{})}
	defer client.CloseIdleConnections() // otherwise s.Close would wait for them
	res, err := client.Get(s.URL + "/ok")
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	require.NoError(t, res.Body.Close())
	_, err = client.Get(s.URL)
	require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err), "%v", err)
	<-held
}
