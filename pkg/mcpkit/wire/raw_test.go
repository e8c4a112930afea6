package wire_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// A router takes the calls of legacy clients directly and those of modern
// clients from mcp-go, which does not get their arguments; mcp-go answers
// malformed calls.
func TestARouterTakesCalls(t *testing.T) {
	h := newServer()
	tool(h, "pass", func(ctx context.Context, req mcp.CallToolRequest) string {
		return toJSON(req.GetArguments()) + " " + string(wire.RawParams(ctx))
	})
	w := serve(t, h, wire.ServeOptions{Call: func(ctx context.Context) bool {
		params := string(wire.RawParams(ctx))
		switch {
		case strings.Contains(params, "panic"):
			panic("as asked")
		case strings.Contains(params, "fail"):
			wire.SetRawError(ctx, json.RawMessage(`{"code":-32099,"message":"as asked"}`))
		case strings.Contains(params, "nothing"):
		case strings.Contains(params, "not mine"):
			return false
		default:
			wire.SetRawResult(ctx, json.RawMessage(`{"params":`+params+`}`))
		}
		return true
	}})
	w.handshake("{}")

	for _, params := range []string{
		`{"name":"pass","arguments":{"a":1.0}}`,
		`{"_meta":{"progressToken":7,"io.modelcontextprotocol/logLevel":"debug"},"name":5}`,
	} {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`, params)
		require.Equal(t, `{"params":`+params+`}`, string(w.answer(1).Result))
	}
	w.call(2, "fail", "{}")
	require.Equal(t, -32099, errorCode(t, w.answer(2)))
	w.call(3, "panic", "{}")
	require.Equal(t, jsonrpc.CodeInternal, errorCode(t, w.answer(3)))
	w.call(4, "nothing", "{}")
	require.Equal(t, jsonrpc.CodeInternal, errorCode(t, w.answer(4)))

	w.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"pass","arguments":{"a":"not mine"}}}`)
	require.Contains(t, text(t, w.answer(4)), `{"a":"not mine"} `, "all of it is mcp-go's")

	// mcp-go answers these.
	for _, params := range []string{`{"name":"pass","_meta":5}`, `null`, `{"name":"unknown",` + modern("new") + `}`,
		`{"name":"pass","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`} {
		w.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":%s}`, params)
		require.NotNil(t, w.answer(5).Error, params)
	}
	whole := `{"arguments":{"big":[1]},"name":"pass",` + modern("new") + `,"task":null}`
	w.send(`{"jsonrpc":"2.0","id":"6","method":"tools/call","params":%s}`, whole)
	require.Equal(t, `null `+whole, text(t, w.answer("6")))
}
