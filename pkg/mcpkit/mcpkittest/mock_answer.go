package mcpkittest

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// answerFor returns the answer to a request without any fault. Hold m.mu.
func (m *Mock) answerFor(msg jsonrpc.Message, name string, arguments json.RawMessage, cursor, version string) []byte {
	result := func(raw string) []byte { return jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(raw)) }
	switch msg.Method {
	case "initialize":
		if version < "2024-11-05" || version > "2025-11-25" {
			version = "2025-11-25"
		}
		return result(`{"protocolVersion":` + strconv.Quote(version) + `,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":` +
			string(jsonrpc.AppendString(nil, m.name)) + `,"version":"1"}}`)
	case "ping":
		return result(`{}`)
	case "tools/list":
		return result(m.listPage(cursor))
	case "tools/call":
		i := m.indexOfTool(name)
		if i < 0 {
			return jsonrpc.AppendError(nil, msg.ID, jsonrpc.CodeInvalidParams, "unknown tool "+strconv.Quote(name))
		}
		if r := m.tools[i].result; r != nil {
			return result(string(r))
		}
		if arguments == nil {
			arguments = json.RawMessage(`{}`)
		}
		return result(`{"content":[{"type":"text","text":` + string(jsonrpc.AppendString(nil, string(arguments))) + `}]}`)
	}
	return jsonrpc.AppendError(nil, msg.ID, jsonrpc.CodeMethodNotFound, "method not found: "+msg.Method)
}

// listPage returns one page of tools/list. Hold m.mu.
func (m *Mock) listPage(cursor string) string {
	from, _ := strconv.Atoi(cursor) //nolint:errcheck // an unknown cursor means the first page
	from = min(max(from, 0), len(m.tools))
	to := len(m.tools)
	if m.pageSize > 0 {
		to = min(from+m.pageSize, to)
	}
	var all []string
	for _, t := range m.tools[from:to] {
		all = append(all, string(t.definition))
	}
	page := `{"tools":[` + strings.Join(all, ",") + `]`
	if to < len(m.tools) {
		page += `,"nextCursor":"` + strconv.Itoa(to) + `"`
	}
	return page + `}`
}

// modernMetaKey is the _meta member that marks a modern request.
const modernMetaKey = `"io.modelcontextprotocol/protocolVersion"`

// toModern returns answer with the members that a result has in the modern era.
// Hold m.mu.
func (m *Mock) toModern(msg jsonrpc.Message, answer []byte) []byte {
	info := json.RawMessage(`{"io.modelcontextprotocol/serverInfo":{"name":` + string(jsonrpc.AppendString(nil, m.name)) + `,"version":"1"}}`)
	result := json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	if msg.Method != "server/discover" {
		was, err := jsonrpc.Split(answer)
		if err != nil || was.Result == nil {
			return answer
		}
		result = was.Result
	}
	for _, add := range []struct{ name, value string }{{"resultType", `"complete"`}, {"ttlMs", "0"}, {"cacheScope", `"private"`}, {"_meta", string(info)}} {
		if add.name != "resultType" && add.name != "_meta" && msg.Method == "tools/call" {
			continue
		}
		with, err := jsonrpc.SetMember(result, add.name, json.RawMessage(add.value))
		if err != nil {
			return answer
		}
		result = with
	}
	return jsonrpc.AppendResult(nil, msg.ID, result)
}
