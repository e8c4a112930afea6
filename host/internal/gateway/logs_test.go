package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// A log message that belongs to no request reaches only clients of the owner whose requests
// the server has had, also if the other clients are modern ones.
func TestLogsWithoutARequestReachOnlyTheirOwner(t *testing.T) {
	hears := func(t *testing.T, g *gateway.Gateway, c wire, first *call.Owner) bool {
		t.Helper()
		g.NotifyLog(json.RawMessage(`{"level":"alert","data":"late"}`), first)
		g.NotifyListChanged(call.Tools) // it arrives after the log message
		heard := false
		for {
			line := c.next(t)
			if strings.Contains(line, "list_changed") {
				return heard
			}
			require.Contains(t, line, "late")
			heard = true
		}
	}
	few := &call.Owner{Profile: "few"}
	t.Run("profiles", func(t *testing.T) {
		g, _ := openWorld(t)
		c := dial(t, g)
		c.send(t, hello(`{}`))
		c.next(t)
		require.True(t, hears(t, g, c, nil))
		require.True(t, hears(t, g, c, &call.Owner{}))
		require.False(t, hears(t, g, c, few))
	})
	t.Run("modern clients", func(t *testing.T) {
		g, err := gateway.New(gateway.Config{
			Name: "toolroom", Version: "1",
			Profile: func(string) (gateway.Catalog, bool) { return fixtures(), true },
		}, fixtures(), fixtures().handle)
		require.NoError(t, err)
		c := dial(t, g)
		c.send(t, hello(`{}`))
		c.next(t)
		require.True(t, hears(t, g, c, nil))
		d := serve(t, g)
		line, headers := modern(1, "tools/call", "params", `"name":"params"`, `{}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/mcp/few", strings.NewReader(line))
		require.NoError(t, err)
		set(req, append(headers, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer "+token))
		status, body, _ := d.do(t, req)
		require.Equal(t, 200, status, body)
		require.False(t, hears(t, g, c, nil))
		require.True(t, hears(t, g, c, &call.Owner{}))
	})
	t.Run("users", func(t *testing.T) {
		g, _ := openWorld(t)
		c := dial(t, g)
		c.send(t, hello(`{}`))
		c.next(t)
		g.HTTP(gateway.HTTPConfig{Auth: &gateway.Auth{}})
		for _, first := range []*call.Owner{nil, {}, {User: "ann"}} {
			require.False(t, hears(t, g, c, first))
		}
	})
}
