package core

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
)

// The tool appears, and its clients hear of it, when a model is configured.
func TestAgentsAppearWithTheirModel(t *testing.T) {
	a, without := within(t, config.Config{State: t.TempDir(), Servers: []config.Server{{Bundled: true, Config: upstream.Config{
		Name: agentServer, Era: upstream.Legacy, Serve: faultserver.Serve,
	}}}})
	if a.Models().HasLocal(t.Context()) {
		t.Skip("a model answers on this machine")
	}
	require.Empty(t, a.List(t.Context()))
	require.Equal(t, upstream.Configured, a.Servers()[0].Status().State, "it is not started for that")

	in, say := io.Pipe()
	hear, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Gateway.ServeStdio(t.Context(), in, out, t.Logf) //nolint:errcheck // its input ends
	}()
	t.Cleanup(func() {
		say.Close() //nolint:errcheck // a pipe
		<-done
	})
	lines := json.NewDecoder(hear)
	read := func() (m struct {
		Method string
		Result json.RawMessage
	}) {
		require.NoError(t, lines.Decode(&m))
		return m
	}
	io.WriteString(say, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n") //nolint:errcheck // the answer tells
	read()
	io.WriteString(say, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n") //nolint:errcheck // likewise
	require.NotContains(t, string(read().Result), `"echo"`)
	io.WriteString(say, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"dispatch_agent","arguments":{"prompt":"p"}}}`+"\n") //nolint:errcheck // likewise
	answer := string(read().Result)
	require.Contains(t, answer, "NO_MODEL: dispatch_agent is not served: no model is configured")
	require.Contains(t, answer, "do the task with the other tools")
	require.Contains(t, answer, `"isError":true`)
	require.Contains(t, answer, `"toolroom/code":"NO_MODEL"`)

	with := without
	with.Models = lookup.Config{Providers: []lookup.Provider{{Name: "lan", Kind: lookup.OpenAI, BaseURL: "http://127.0.0.1:1/v1"}}}
	require.NoError(t, a.apply(t.Context(), with))
	require.Equal(t, "notifications/tools/list_changed", read().Method)
	_, err := ask(t.Context(), a, "echo", `{}`)
	require.NoError(t, err)
	require.NoError(t, a.WhyUnavailable(t.Context(), "dispatch_agent"))
	require.NoError(t, a.WhyUnavailable(t.Context(), "echo"))

	require.NoError(t, a.apply(t.Context(), without))
	require.Equal(t, "notifications/tools/list_changed", read().Method)
	require.Empty(t, a.List(t.Context()))
}
