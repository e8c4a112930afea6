package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// The first call reaches a server that applies its roots for a while after it was told them.
func TestTheFirstCallWaitsForRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "files", Era: Legacy, Roots: func() []string { return []string{"file:///r"} }}
		cfg.Serve = func(_ context.Context, in io.Reader, out io.Writer) error {
			applied := make(chan struct{})
			answer := func(id json.RawMessage, result string) {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result) //nolint:errcheck // the host tells
			}
			for lines := bufio.NewScanner(in); lines.Scan(); {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
					return err
				}
				switch m.Method {
				case "initialize":
					answer(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`)
				case "notifications/initialized":
					fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`) //nolint:errcheck // the host tells
				case "": // the roots
					time.AfterFunc(rootsApplyTimeout/2, func() { close(applied) })
				case "tools/list":
					answer(m.ID, `{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}`)
				case "tools/call":
					select {
					case <-applied:
						answer(m.ID, `{"content":[]}`)
					default:
						answer(m.ID, `{"content":[],"isError":true}`)
					}
				}
			}
			return nil
		}
		s, err := New(cfg, nil)
		require.NoError(t, err)
		defer s.Close()
		begin := time.Now()
		for range 3 {
			result, err := s.Call(t.Context(), &call.Request{Tool: &call.Tool{Name: "files__read", Original: "read", Server: "files"}, Params: json.RawMessage(`{"name":"read"}`)})
			require.NoError(t, err)
			require.JSONEq(t, `{"content":[]}`, string(result.Raw))
		}
		require.LessOrEqual(t, time.Since(begin), 2*rootsApplyTimeout, "only the first call waits")
	})
}
