package core_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/conformanceserver"
)

// everything is a server that has all there is, of that era.
func everything(name, era string) config.Server {
	return config.Server{Config: upstream.Config{Name: name, Serve: func(_ context.Context, in io.Reader, out io.Writer) error {
		conformanceserver.Serve(in, out, era)
		return nil
	}}}
}

// Two servers that have the same things, in one host: each is reached under
// its own name, and a profile has one of them alone.
func TestWhatServersHavePassesThroughTheHost(t *testing.T) {
	a, err := core.Open(config.Config{
		Servers:  []config.Server{everything("old", "legacy"), everything("new", "modern")},
		Profiles: []catalog.Profile{{Name: "one", Servers: []string{"new"}}},
	})
	require.NoError(t, err)
	defer a.Close()
	var door *gateway.HTTPHandler
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { door.ServeHTTP(w, r) }))
	defer web.Close()
	door = a.Gateway.HTTP(gateway.HTTPConfig{Hosts: []string{web.Listener.Addr().String()}})
	post := func(path, method, params string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	prompts := post("/mcp", "prompts/list", "")
	require.Contains(t, prompts, `"old__test_simple_prompt"`)
	require.Contains(t, prompts, `"new__test_simple_prompt"`)
	resources := post("/mcp", "resources/list", "")
	require.Contains(t, resources, `{"uri":"test://static-text"`)
	require.Contains(t, resources, `{"uri":"toolroom:new/test://static-text"`)
	for _, uri := range []string{"test://static-text", "toolroom:new/test://static-text", "toolroom:old/test://static-text", "test://template/7/data"} {
		require.Contains(t, post("/mcp", "resources/read", `"uri":"`+uri+`"`), `"contents":[{"uri":"`+uri+`"`, "the contents have the URI that was asked for")
	}
	for _, server := range []string{"old", "new"} {
		require.Contains(t, post("/mcp", "prompts/get", `"name":"`+server+`__test_simple_prompt"`), "This is a simple prompt for testing.")
		require.Contains(t, post("/mcp", "tools/call", `"name":"`+server+`__test_simple_text"`), "This is a simple text response for testing.")
		require.Contains(t, post("/mcp", "completion/complete", `"ref":{"type":"ref/prompt","name":"`+server+`__test_prompt_with_arguments"},"argument":{"name":"arg1","value":"p"}`), `"paris"`)
	}
	require.NotContains(t, post("/mcp/one", "prompts/list", ""), "old__")
	require.NotContains(t, post("/mcp/one", "tools/list", ""), "old__")
	require.Contains(t, post("/mcp/one", "resources/list", ""), "static-text")
	require.Contains(t, post("/mcp/one", "tools/call", `"name":"old__test_simple_text"`), "unknown tool")
	_, err = core.Open(config.Config{Profiles: []catalog.Profile{{Name: "a/b"}}})
	require.ErrorContains(t, err, "a/b")
}
