package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

const multiRound = "new__test_input_required_result_multi_round"

// modern is a host with a modern server, a chain that comes to a question of
// its, and a modern client that calls tools.
func modern(t *testing.T, p policy.Config) (a *core.App, marks *int, try func(tool, more string) reply) {
	marks = new(int)
	state := t.TempDir()
	a, err := core.Open(config.Config{
		State: state, Store: backend.Config{Dir: state}, Servers: []config.Server{everything("new", "modern")},
		Stages: config.Stages{Policy: p, Approval: approve.Config{ClientOff: true}},
		Declared: []manifest.Tool{{Name: "both", Mode: manifest.Chain, Input: json.RawMessage(`{"type":"object"}`), Chain: &chain.Config{Steps: []chain.Step{
			{Tool: "mark"}, {Tool: multiRound},
		}}}},
	})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	mark, err := mcpkit.NewTool(mcpkit.Def{Name: "mark"}, func(context.Context, struct{}) (*mcpkit.Result, error) {
		*marks++
		return &mcpkit.Result{Text: "marked"}, nil
	})
	require.NoError(t, err)
	require.NoError(t, a.Register(mark))
	web := httptest.NewUnstartedServer(nil)
	web.Config.Handler = a.Gateway.HTTP(gateway.HTTPConfig{Hosts: []string{web.Listener.Addr().String()}})
	web.Start()
	t.Cleanup(web.Close)
	return a, marks, func(tool, more string) (r reply) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, tool, more)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(body))
		require.NoError(t, err)
		for name, value := range map[string]string{"Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(answer, &struct{ Result *reply }{&r}), "%s", answer)
		r.text = string(answer)
		return r
	}
}

// reply is what a modern client is answered.
type reply struct {
	ResultType    string
	InputRequests map[string]json.RawMessage
	RequestState  string
	text          string
}

// next are the members of the next round, with an answer to each question.
func (r reply) next(t *testing.T) string {
	require.Equal(t, "input_required", r.ResultType, r.text)
	answers := map[string]any{}
	for key := range r.InputRequests {
		answers[key] = map[string]any{"action": "accept", "content": map[string]string{"name": "Ann", "color": "red"}}
	}
	raw, err := json.Marshal(answers)
	require.NoError(t, err)
	return fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, raw, r.RequestState)
}

func decideAll(t *testing.T, a *core.App) {
	all, err := a.Approvals().List(t.Context())
	require.NoError(t, err)
	for _, r := range all {
		if r.State == approve.Pending {
			_, err := a.Decide(t.Context(), r.ID, approve.Decision{Approve: true})
			require.NoError(t, err)
		}
	}
}

// A call that is approved is made in as many rounds as its server needs, from
// the client to the server and back, and not once more.
func TestAnApprovedCallInRounds(t *testing.T) {
	a, _, try := modern(t, policy.Config{Rules: []policy.Rule{{Tool: multiRound, Do: policy.Ask}}})
	require.Contains(t, try(multiRound, "").text, "PENDING_APPROVAL")
	decideAll(t, a)
	first := try(multiRound, "")
	second := try(multiRound, first.next(t))
	require.Contains(t, try(multiRound, first.next(t)).text, "CONFLICT", "a round is made once")
	require.Contains(t, try(multiRound, second.next(t)).text, "Both steps")
	require.Contains(t, try(multiRound, second.next(t)).text, "PENDING_APPROVAL")
	require.Contains(t, try(multiRound, "").text, "PENDING_APPROVAL")
}

// A chain that comes to a question, or to a step that waits, goes on there.
func TestAChainGoesOnInTheModernEra(t *testing.T) {
	a, marks, try := modern(t, policy.Config{Rules: []policy.Rule{{Tool: "both", Do: policy.Ask}, {Tool: multiRound, Do: policy.Ask}}})
	require.Contains(t, try("both", "").text, "PENDING_APPROVAL")
	require.Zero(t, *marks)
	decideAll(t, a)
	require.Contains(t, try("both", "").text, "PENDING_APPROVAL: both: step "+multiRound)
	require.Contains(t, try("both", "").text, "PENDING_APPROVAL: both: step "+multiRound, "its own approval holds")
	decideAll(t, a)
	last := try("both", try("both", try("both", "").next(t)).next(t))
	require.Contains(t, last.text, "Both steps")
	require.Equal(t, 1, *marks)
	require.Contains(t, try("both", "").text, "PENDING_APPROVAL")
	require.Equal(t, 1, *marks)
}
