package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// What a server was given to prove itself is in nothing that is said of it, though
// it repeats it.
func TestCredentialsThatAServerRepeatsAreHidden(t *testing.T) {
	hidden := func(s *upstream.Server, err error, want string) {
		t.Helper()
		require.ErrorContains(t, err, want)
		raw, fault := json.Marshal(s.Status())
		require.NoError(t, fault)
		require.NotContains(t, err.Error()+string(raw), "SEKRIT")
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		spawner := upstream.NewSpawner(nil)
		t.Cleanup(spawner.Close)
		s, err := upstream.New(upstream.Config{
			Name: "fix", Env: append(os.Environ(), "DB=SEKRIT-db"), Secrets: []secret.Text{"SEKRIT-db", "no"},
			Command: []string{sh, "-c", `echo "there is no $DB" >&2; exit 1`}, KillsOwnTree: true,
		}, spawner)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		_, err = s.Tools(t.Context())
		hidden(s, err, "on its standard error: there is no ***")
	}

	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"not for %s, %s, %s of pro"}`, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.URL.Query().Get("key")) //nolint:errcheck // a test
	}))
	s := at(t, url+"?key=SEKRIT-query", func(c *upstream.Config) {
		c.Headers = map[string]secret.Text{"X-Api-Key": "SEKRIT-header", "X-Plan": "pro"}
		c.Token = "SEKRIT-token"
	})
	_, err := s.Tools(t.Context())
	hidden(s, err, "not for Bearer ***, ***, *** of pro")

	s = at(t, serveHTTP(t, &minimal{}), func(c *upstream.Config) { c.Era, c.Token = upstream.Legacy, "SEKRIT-token" })
	_, err = s.Call(t.Context(), &call.Request{Tool: &call.Tool{Server: "fix", Original: "t"}, Params: json.RawMessage(`{"arguments":{}}`)})
	hidden(s, err, "not with Bearer ***")
}

// minimal is a server that answers nothing that it need not. Its list of prompts
// changes while it is first read.
type minimal struct {
	mu   sync.Mutex
	read int
}

func (p *minimal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(line []byte) { fmt.Fprintf(w, "data: %s\n\n", line) } //nolint:errcheck // a test
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}`
	case "tools/list":
		result = `{"tools":[]}`
	case "prompts/list":
		p.mu.Lock()
		p.read++
		result = fmt.Sprintf(`{"prompts":[{"name":"p%d"}]}`, p.read)
		if p.read == 1 {
			send(jsonrpc.AppendNotification(nil, "notifications/prompts/list_changed", nil))
		}
		p.mu.Unlock()
	default:
		send(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "not with "+r.Header.Get("Authorization")))
		return
	}
	send(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(result)))
}

// A list that changes while it is read is not kept: who asks next reads it anew.
func TestAListThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	s := at(t, serveHTTP(t, &minimal{}), func(c *upstream.Config) { c.Era = upstream.Legacy })
	for _, want := range []string{"p1", "p2", "p2"} {
		items, err := s.List(t.Context(), call.Prompts)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"`+want+`"}`, string(items[0]))
	}
}

// Whoever refuses a ping has answered it.
func TestAPingThatIsRefusedIsASignOfLife(t *testing.T) {
	s := at(t, serveHTTP(t, &minimal{}), func(c *upstream.Config) { c.Era = upstream.Legacy })
	_, err := s.Ping(t.Context())
	require.NoError(t, err)
}

// A list that changed after it was read and before the stream was open on which
// that would have been told is read again.
func TestAChangeBeforeTheStreamIsOpenIsSeen(t *testing.T) {
	var listed, opened atomic.Int32
	read := make(chan struct{})
	s := at(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if r.Method == http.MethodGet {
			<-read
			opened.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush() //nolint:errcheck // the test's server has one
			<-r.Context().Done()
			return
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}`
		if m.Method == "tools/list" {
			if result = fmt.Sprintf(`{"tools":[{"name":"t%d"}]}`, opened.Load()); listed.Add(1) == 1 {
				close(read)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(result))) //nolint:errcheck // a test
	})), func(c *upstream.Config) { c.Era = upstream.Legacy })
	require.Eventually(t, func() bool {
		tools, err := s.Tools(t.Context())
		require.NoError(t, err)
		return string(tools[0]) == `{"name":"t1"}`
	}, time.Minute, time.Millisecond)
	require.EqualValues(t, 2, listed.Load())
}
