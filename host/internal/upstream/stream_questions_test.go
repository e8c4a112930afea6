package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// On streamable HTTP, the stream shows to which call a question belongs, also while calls of
// several users are running.
func TestAQuestionOnTheStreamOfACall(t *testing.T) {
	t.Parallel()
	users := []string{"ann", "bob"}
	var running, ended sync.WaitGroup
	running.Add(len(users))
	asked := make(map[string]chan string)
	for _, name := range users {
		asked[name] = make(chan string, len(users))
	}
	s := web(t, func(w http.ResponseWriter, r *http.Request, id, arguments string) {
		running.Done()
		running.Wait()
		for _, name := range users {
			if !strings.Contains(arguments, name) {
				continue
			}
			stream(w, fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":{"message":"for %[1]s","requestedSchema":{"type":"object","properties":{}}}}`+"\n\n", name))
			select {
			case heard := <-asked[name]:
				stream(w, fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`+"\n\n", id, heard))
			case <-r.Context().Done():
			}
		}
	}, nil)
	_, err := s.Tools(t.Context())
	require.NoError(t, err)
	results := make([]string, len(users))
	for i, name := range users {
		ended.Go(func() {
			r := request("t", fmt.Sprintf(`{"name":"t","arguments":{"of":%q}}`, name))
			r.Caller = call.Caller{EntryPoint: "http", ID: name, User: name}
			r.Ask = func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
				asked[name] <- name + " heard " + string(params)
				return json.RawMessage(`{"action":"accept"}`), nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := s.Call(ctx, r)
			if err == nil {
				results[i] = string(res.Raw)
			}
		})
	}
	ended.Wait()
	for i, name := range users {
		require.Contains(t, results[i], name+" heard ")
		require.Contains(t, results[i], "for "+name)
	}
}
