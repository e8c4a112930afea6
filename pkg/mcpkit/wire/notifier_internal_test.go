package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// lateReader is a client that reads nothing until it is released, and then
// everything.
type lateReader struct {
	release chan struct{}

	mu   sync.Mutex
	read bytes.Buffer
}

func (w *lateReader) Write(p []byte) (int, error) {
	<-w.release
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read.Write(p)
}

func (w *lateReader) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read.String()
}

// soon fails the test if f does not return.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.FailNow(t, what+" is held up")
	}
}

// A broadcast does not wait for a client that does not read. That client misses
// notifications beyond the backlog, but learns which lists have changed, as do
// its listen streams.
func TestAClientThatDoesNotReadHoldsUpNobodyElse(t *testing.T) {
	h := server.NewMCPServer("x", "1", server.WithToolCapabilities(true))
	out := &lateReader{release: make(chan struct{})}
	c := newConn(t.Context(), h, out, ServeOptions{})
	c.handshake.initialized = true
	require.NoError(t, h.RegisterSession(c.ctx, c.session))
	stream := &request{conn: c, ctx: c.ctx, id: json.RawMessage(`7`), key: "7", listen: true}
	pad := strings.Repeat("x", 1<<10)
	const told = 40_000
	soon(t, "who tells", func() {
		for i := range told {
			h.SendNotificationToAllClients("notifications/message", map[string]any{"n": i, "data": pad})
			if i%100 == 0 {
				h.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
				h.SendNotificationToAllClients(mcp.MethodNotificationPromptsListChanged, nil)
				stream.NotificationChannel() <- mcp.JSONRPCNotification{JSONRPC: "2.0", Notification: mcp.Notification{Method: mcp.MethodNotificationToolsListChanged}}
			}
		}
	})
	close(out.release)
	c.session.closeSending()
	stream.closeSending()
	require.NoError(t, c.out.flush())
	all := out.String()
	require.Less(t, len(all), 3*maxWriteBacklog)
	for i := range 4000 { // the notifications that fit, in order
		at := strings.Index(all, fmt.Sprintf(`"n":%d}`, i))
		require.GreaterOrEqual(t, at, 0, "%d", i)
		if i%1000 == 0 {
			all = all[at:]
		}
	}
	last := strings.LastIndex(out.String(), `"notifications/message"`)
	require.Less(t, last, strings.LastIndex(out.String(), `"notifications/tools/list_changed"`)+maxWriteBacklog)
	require.Contains(t, out.String(), `"notifications/prompts/list_changed"`)
	require.Contains(t, out.String(), `"io.modelcontextprotocol/subscriptionId":7`)
}

// A client that does not read misses a request's notifications, so that the
// request ends and frees its resources.
func TestANotificationDoesNotWaitForWhoDoesNotRead(t *testing.T) {
	h := server.NewMCPServer("x", "1")
	out := &lateReader{release: make(chan struct{})}
	c := newConn(t.Context(), h, out, ServeOptions{})
	v := &request{conn: c, ctx: c.ctx, id: json.RawMessage(`1`), key: "1"}
	ctx := h.WithContext(context.Background(), v)
	params := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	taken := 0
	soon(t, "the request", func() {
		for range 100 {
			if Notify(ctx, "notifications/progress", params) {
				taken++
			}
		}
	})
	require.Greater(t, taken, 5)
	require.Less(t, taken, 20)
	close(out.release)
	require.NoError(t, c.out.flush())
	require.True(t, Notify(ctx, "notifications/progress", params), "it reads again")
	require.NoError(t, c.out.flush())
	require.Equal(t, taken+1, strings.Count(out.String(), "\n"))
}
