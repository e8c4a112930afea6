package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/config/secret"
	"github.com/toolroom-mcp/toolroom/host/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// What a server was given to prove itself is in nothing that is said of it, though
// it repeats it.
func TestCredentialsThatAServerRepeatsAreHidden(t *testing.T) {
	said := func(s *upstream.Server) string {
		_, err := s.Tools(t.Context())
		require.Error(t, err)
		raw, fault := json.Marshal(s.Status())
		require.NoError(t, fault)
		return err.Error() + string(raw)
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		s, err := upstream.New(upstream.Config{
			Name: "fix", Env: append(os.Environ(), "DB=SEKRIT-db"), Secrets: []secret.Text{"SEKRIT-db", "no"},
			Command: []string{sh, "-c", `echo "there is no $DB" >&2; exit 1`}, KillsOwnTree: true,
		}, upstream.NewSpawner(nil))
		require.NoError(t, err)
		t.Cleanup(s.Close)
		got := said(s)
		require.Contains(t, got, "its last words: there is no ***")
		require.NotContains(t, got, "SEKRIT")
	}
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"not for %s, %s, %s of pro"}`, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.URL.Query().Get("key")) //nolint:errcheck // a test
	}))
	got := said(at(t, url+"?key=SEKRIT-query", func(c *upstream.Config) {
		c.Headers = map[string]secret.Text{"X-Api-Key": "SEKRIT-header", "X-Plan": "pro"}
		c.Token = "SEKRIT-token"
	}))
	require.Contains(t, got, "not for Bearer ***, ***, *** of pro")
	require.NotContains(t, got, "SEKRIT")
}

// pairOfPrompts is a server whose list of prompts changes while it is first read.
type pairOfPrompts struct {
	mu   sync.Mutex
	read int
}

func (p *pairOfPrompts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"prompts":{"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}`
	case "prompts/list":
		p.mu.Lock()
		p.read++
		result = fmt.Sprintf(`{"prompts":[{"name":"p%d"}]}`, p.read)
		if p.read == 1 {
			send(jsonrpc.AppendNotification(nil, "notifications/prompts/list_changed", nil))
		}
		p.mu.Unlock()
	}
	send(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(result)))
}

// A list that changes while it is read is not kept: who asks next reads it anew.
func TestAListThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	s := at(t, serveHTTP(t, &pairOfPrompts{}), func(c *upstream.Config) { c.Era = upstream.Legacy })
	for _, want := range []string{"p1", "p2", "p2"} {
		items, err := s.List(t.Context(), call.Prompts)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"`+want+`"}`, string(items[0]))
	}
}
