package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// What a server at an address does with a call that reaches it, in place of
// the faults of the same number.
const (
	webAnswers fault = iota // carries it out and answers
	webBusy                 // 503, having done nothing
	webLater                // 429, having done nothing
	webHangsUp              // having done nothing
	webCutsOff              // carries it out and hangs up
	webForgets              // does not know the session, and so does nothing
	webFails                // carries it out and says 500
	webFaults
)

// ServeHTTP answers as a server of the older era does, without streams.
func (s *scheduled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m, err := jsonrpc.Split(body)
	if err != nil || m.Kind != jsonrpc.Request {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := json.RawMessage(`{}`)
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
	case "tools/list":
		result = json.RawMessage(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		f := s.nextOf(func(f fault) bool { return f == webAnswers || f == webCutsOff || f == webFails })
		switch f {
		case webHangsUp, webCutsOff:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.(*net.TCPConn).SetLinger(0) //nolint:errcheck // it ends either way
				conn.Close()                     //nolint:errcheck // that is the fault
			}
			return
		}
		if status := map[fault]int{webBusy: 503, webLater: 429, webForgets: 404, webFails: 500}[f]; status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(jsonrpc.AppendResult(nil, m.ID, result)) //nolint:errcheck // the host is gone
}

// The same over HTTP, where sessions are forgotten and connections are used
// again.
func TestRetryNeverRepeatsASideEffectOverHTTP(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5)) //nolint:gosec // a schedule, not a secret
	fixture := &scheduled{}
	web := httptest.NewServer(fixture)
	defer web.Close()
	spawner := upstream.NewSpawner(nil)
	defer spawner.Close()
	s, err := upstream.New(upstream.Config{Name: "s", URL: web.URL, Transport: upstream.StreamableHTTP, Era: upstream.Legacy, AllowPrivate: true}, spawner)
	require.NoError(t, err)
	defer s.Close()
	h := call.Chain(s.Call, retry.New(retry.Config{Attempts: attempts, Base: time.Microsecond}))
	had := 0
	for n := range 300 {
		plan := make([]fault, random.IntN(5))
		for i := range plan {
			plan[i] = fault(random.IntN(int(webFaults)))
		}
		fixture.schedule(0, false, plan...)
		tool := &call.Tool{Name: "t", Server: "s", Original: "t"}
		tool.Idempotent = random.IntN(2) == 0
		_, err := h(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(`{"name":"t"}`)})
		_, ran := fixture.counts()
		what := fmt.Sprintf("schedule %d: plan %v, idempotent %v: %v", n, plan, tool.Idempotent, err)
		if !tool.Idempotent {
			require.LessOrEqual(t, ran, 1, what)
			continue
		}
		used := 0
		for used < len(plan) && (plan[used] == webBusy || plan[used] == webLater || plan[used] == webFails) {
			used++
		}
		if used < attempts && (used == len(plan) || plan[used] == webAnswers) {
			had++
			require.NoError(t, err, what)
		}
	}
	require.Greater(t, had, 20)
}
