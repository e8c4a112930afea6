package core

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// A client is told of what concerns its part of the catalogue, of either era.
func TestAProfileIsToldOfItsOwnChanges(t *testing.T) {
	cfg := config.Config{Profiles: []catalog.Profile{{Name: "one", Servers: []string{"new"}}}}
	a, cfg := within(t, cfg, "old", "new")
	var door *gateway.HTTPHandler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { door.ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	door = a.Gateway.HTTP(gateway.HTTPConfig{Hosts: []string{web.Listener.Addr().String()}})
	send := func(method, path, body string, header ...string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		header = append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, header...)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.Less(t, resp.StatusCode, 300)
		t.Cleanup(func() { resp.Body.Close() }) //nolint:errcheck // only read
		return resp
	}
	stream := func(resp *http.Response) func() string {
		events := bufio.NewScanner(resp.Body)
		return func() string {
			for events.Scan() {
				if m := regexp.MustCompile(`"method":"notifications/([a-z_/]*)"`).FindStringSubmatch(events.Text()); m != nil {
					return m[1]
				}
			}
			return "the end"
		}
	}
	legacy := func(path string) func() string {
		resp := send(http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		io.Copy(io.Discard, resp.Body) //nolint:errcheck // it was answered
		session := []string{"Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id")}
		send(http.MethodPost, path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
		io.Copy(io.Discard, send(http.MethodPost, path, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, session...).Body) //nolint:errcheck // likewise
		return stream(send(http.MethodGet, path, "", session...))
	}
	modern := func(path string) func() string {
		return stream(send(http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`,
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
	}
	all, one, allModern, oneModern := legacy("/mcp"), legacy("/mcp/one"), modern("/mcp"), modern("/mcp/one")
	const tools, prompts = "tools/list_changed", "prompts/list_changed"
	require.Equal(t, "subscriptions/acknowledged", allModern())
	require.Equal(t, "subscriptions/acknowledged", oneModern())

	add := func(server, tool string) {
		_, err := ask(t.Context(), a, server+"__add_tool", `{"text":"`+tool+`"}`)
		require.NoError(t, err)
	}
	add("old", "x")
	require.Equal(t, []string{tools, tools}, []string{all(), allModern()})
	add("new", "y")
	require.Equal(t, []string{tools, tools, tools, tools}, []string{all(), allModern(), one(), oneModern()})

	// The profile itself changes: nobody else is told.
	next := cfg
	next.Profiles = []catalog.Profile{{Name: "one", Servers: []string{"new"}, Block: []string{"*__y"}}}
	require.NoError(t, a.apply(t.Context(), next))
	require.Equal(t, []string{tools, tools}, []string{one(), oneModern()})
	a.Gateway.NotifyListChanged(call.Prompts)
	require.Equal(t, []string{prompts, prompts, prompts, prompts}, []string{all(), allModern(), one(), oneModern()})
}
