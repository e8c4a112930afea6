package mcpkit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Defects 7 and 8: a tool's definition on the wire has all four hints, a title
// and plain types, in the order of registration.
func TestDefinitionsOnTheWire(t *testing.T) {
	list := runSay(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).messages(t)["1"]
	var got struct{ Tools []json.RawMessage }
	require.NoError(t, json.Unmarshal(list.Result, &got))
	tools, err := newSay(t, &run{}).Tools()
	require.NoError(t, err)
	require.Len(t, got.Tools, len(tools))
	for i, tool := range tools {
		require.Equal(t, string(tool.Definition()), string(got.Tools[i]), "byte for byte")
	}
	for _, want := range []string{`"readOnlyHint":true`, `"destructiveHint":false`, `"idempotentHint":true`, `"openWorldHint":false`,
		`"title":"Say"`} {
		require.Contains(t, string(got.Tools[0]), want)
	}
	require.NotContains(t, string(list.Result), "outputSchema")
	require.NotContains(t, string(list.Result), `"null"`)
	require.NotContains(t, string(list.Result), "SayTool", "aliases are not advertised")
	require.NotContains(t, string(list.Result), "ttlMs")
}

// A modern list equals mcp-go's own.
func TestModernListLikeMcpGo(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modern("new") + `}}`
	ours := runSay(t, in).messages(t)["1"]
	tools, err := newSay(t, &run{}).Tools()
	require.NoError(t, err)
	h := newSay(t, &run{}).Server(tools...)
	answer, err := json.Marshal(h.HandleMessage(t.Context(), json.RawMessage(in))) // no slot: mcp-go encodes
	require.NoError(t, err)
	theirs, err := jsonrpc.Split(answer)
	require.NoError(t, err)
	var a, b map[string]any
	require.NoError(t, json.Unmarshal(ours.Result, &a))
	require.NoError(t, json.Unmarshal(theirs.Result, &b))
	require.ElementsMatch(t, a["tools"], b["tools"])
	delete(a, "tools")
	delete(b, "tools")
	require.Equal(t, b, a)
}

// initialize names the server, and says that the set of tools is fixed.
func TestInitialize(t *testing.T) {
	m := runSay(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`).messages(t)["1"]
	var res struct {
		ProtocolVersion string
		Instructions    string
		ServerInfo      struct{ Name, Title, Version string }
		Capabilities    struct{ Tools map[string]any }
	}
	require.NoError(t, json.Unmarshal(m.Result, &res))
	require.Equal(t, "2025-06-18", res.ProtocolVersion)
	require.Equal(t, "Says what it is told.", res.Instructions)
	require.Equal(t, "mcp-say", res.ServerInfo.Name)
	require.Equal(t, "Say", res.ServerInfo.Title)
	require.NotEmpty(t, res.ServerInfo.Version)
	require.NotNil(t, res.Capabilities.Tools)
	require.NotEqual(t, true, res.Capabilities.Tools["listChanged"])
}

// Defects 5 and 6: bad arguments and a tool's errors are results in plain
// words with a code; an unknown tool or method is a JSON-RPC error.
func TestErrorsOnTheWire(t *testing.T) {
	r := runSay(t, strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"fail":[],"more":{}}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"x","fail":true}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sya","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"no/such"}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"say"}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"say","arguments":null}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{}}}`,
	}, "\n"))
	require.Equal(t, mcpkit.ExitOK, r.code)
	got := r.messages(t)
	var res struct {
		IsError bool
		Meta    map[string]any `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(got["1"].Result, &res))
	require.True(t, res.IsError)
	require.Equal(t, "INVALID_PARAMS", res.Meta["toolroom/code"])
	for _, pointer := range []string{"/text", "/fail", "/more"} {
		require.Contains(t, text(t, got["1"]), pointer)
	}
	require.Equal(t, "nothing called x; try another", text(t, got["2"]))
	require.Contains(t, string(got["2"].Result), `"toolroom/code":"NOT_FOUND"`)
	require.Equal(t, jsonrpc.CodeInvalidParams, errorCode(t, got["3"]))
	require.Contains(t, string(got["3"].Error), "say, a_budget")
	require.Equal(t, jsonrpc.CodeMethodNotFound, errorCode(t, got["4"]))
	for _, id := range []string{"5", "6"} {
		require.Contains(t, string(got[id].Result), `"toolroom/code":"MISSING_PARAMETER"`)
	}
	require.Equal(t, jsonrpc.CodeInvalidParams, errorCode(t, got["7"]))
}

// Params of the wrong form are -32602, described in terms of JSON instead of
// Go.
func TestParamsOfTheWrongForm(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"tools/call", `{"name":7}`, "invalid params: params.name must be a string, not a number"},
		{"tools/call", `{"name":"say","_meta":"x"}`, "invalid params: params._meta must be an object, not a string"},
		{"tools/list", `{"cursor":[]}`, "invalid params: params.cursor must be a string, not a list"},
		{"tools/list", `{"cursor":"zz!"}`, "invalid params: unknown cursor: list again without a cursor"},
		{"initialize", `{"protocolVersion":1.5}`, "invalid params: params.protocolVersion must be a string, not a number"},
		{"initialize", `{"protocolVersion":"2025-11-25","capabilities":true}`, "invalid params: params.capabilities must be an object, not a boolean"},
		{"initialize", `{"protocolVersion":"2025-11-25","clientInfo":{"name":{}}}`, "invalid params: params.clientInfo.name must be a string, not an object"},
	} {
		r := runSay(t, `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":`+c.params+`}`)
		m := r.messages(t)["1"]
		require.Equal(t, jsonrpc.CodeInvalidParams, errorCode(t, m), c.params)
		var e struct{ Message string }
		require.NoError(t, json.Unmarshal(m.Error, &e))
		require.Equal(t, c.want, e.Message)
	}
	for _, same := range []string{`{"code":-32601,"message":"Method x not found","data":1.0}`, `[]`, `{"code":1,"message":2}`} {
		require.Equal(t, same, string(wire.PlainError(json.RawMessage(same))))
	}
	require.JSONEq(t, `{"code":-32602,"message":"invalid params: unknown reference type: ref/x"}`,
		string(wire.PlainError(json.RawMessage(`{"code":-32600,"message":"unparsable completion/complete request: unknown reference type: ref/x"}`))))
}

// A call works in both eras and by an alias, and does not escape < > &.
func TestCallOnTheWire(t *testing.T) {
	r := runSay(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"SayTool","arguments":{"text":"a <b> & c"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},`+modern("new")+`}}`)
	got := r.messages(t)
	require.Equal(t, `{"content":[{"type":"text","text":"a <b> & c"}],"_meta":{"toolroom/result":{"words":4}}}`, string(got["1"].Result))
	_, err := jsonrpc.Members(got["2"].Result)
	require.NoError(t, err, "no member twice")
	require.Contains(t, string(got["2"].Result), `"resultType":"complete"`)
	require.Contains(t, string(got["2"].Result), `"_meta":{"toolroom/result":{"words":1},"io.modelcontextprotocol/serverInfo":{"name":"mcp-say"`)
	require.Equal(t, "x", text(t, got["2"]))
}

// The same server over another mcp-go transport.
func TestServerWithoutTheWire(t *testing.T) {
	tools, err := newSay(t, &run{}).Tools()
	require.NoError(t, err)
	h := newSay(t, &run{}).Server(slices.DeleteFunc(tools, func(t *mcpkit.Tool) bool { return t.Name() != "say" })...)
	answer, err := json.Marshal(h.HandleMessage(t.Context(), json.RawMessage(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Say","arguments":{"text":"x"}}}`)))
	require.NoError(t, err)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"_meta":{"toolroom/result":{"words":1}}}}`, string(answer))
	answer, err = json.Marshal(h.HandleMessage(t.Context(), json.RawMessage(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_budget"}}`)))
	require.NoError(t, err)
	require.Contains(t, string(answer), "-32602", "filtered out")
}
