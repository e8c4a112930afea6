package gateway_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// later is a catalog whose tools are not listed when they are looked up.
type later struct {
	tools
	listed map[string]*call.Tool // after their server was listed
}

func (l later) Lookup(_ context.Context, name string) (*call.Tool, bool) {
	return &call.Tool{Name: name, Unlisted: &call.Unlisted{Find: func(context.Context) (*call.Tool, error) {
		if tool, ok := l.listed[name]; ok {
			return tool, nil
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q", name)
	}}}, true
}

func (later) handle(ctx context.Context, req *call.Request) (*call.Result, error) {
	tool, err := req.Tool.Unlisted.Find(ctx)
	if err != nil {
		return nil, &call.ExecutionError{Tool: req.Tool.Name, Phase: call.PhaseConnect, Message: "it failed", Cause: err}
	}
	return &call.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"` + tool.Original + `"}]}`)}, nil
}

func TestChecksOfToolsThatAreListedLater(t *testing.T) {
	catalog := later{listed: map[string]*call.Tool{
		"s__a": {Name: "s__a", Original: "a", Definition: json.RawMessage(`{"name":"s__a","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`)},
	}}
	g, err := gateway.New(gateway.Config{Name: "toolroom"}, catalog, catalog.handle)
	require.NoError(t, err)
	d := serve(t, g)
	call := func(name string, headers ...string) string {
		headers = append(headers, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{"region":"eu"},`+modernMeta+`}}`, headers...)
		return body
	}
	require.Contains(t, call("s__a", "Mcp-Param-Region", "eu"), `"text":"a"`)
	require.Contains(t, call("s__a", "Mcp-Param-Region", "us"), `"code":-32020`)
	require.Contains(t, call("s__b"), `"error":{"code":-32602,"message":"unknown tool \"s__b\"; tools/list lists the tools"}`)
}
