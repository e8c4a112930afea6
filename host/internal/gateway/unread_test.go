package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// A client that does not read what its call notifies is given up, and its call
// with it, which would else keep what it holds: others may wait for that.
func TestAClientThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	note := json.RawMessage(`{"progressToken":7,"progress":1,"message":"` + strings.Repeat("x", 1000) + `"}`)
	g := open(t, tools{"talks": func(ctx context.Context, req *call.Request) (*call.Result, error) {
		defer close(ended)
		for ctx.Err() == nil {
			req.OnNotify("notifications/progress", note)
		}
		return nil, ctx.Err()
	}})
	var h *gateway.HTTPHandler
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	host := s.Listener.Addr().String()
	h = gateway.Impatient(g.HTTP(gateway.HTTPConfig{Token: token, Hosts: []string{host}}), 300*time.Millisecond)
	s.Start()
	defer func() {
		require.NoError(t, h.Close(context.Background()))
		s.CloseClientConnections()
		s.Close()
	}()
	conn, err := net.Dial("tcp", host)
	require.NoError(t, err)
	defer conn.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talks","_meta":{"progressToken":7}}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", host, token, len(body), body)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("its call goes on")
	}
}
