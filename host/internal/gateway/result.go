package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ErrorResult returns a tool result with isError for an error of the host. The code is in
// the text and in _meta; for a pending call, _meta also describes the awaited decision.
func ErrorResult(err error) json.RawMessage {
	code := string(toolerr.CodeOf(err))
	raw := jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), code+": "+err.Error())
	raw = append(raw, `}],"isError":true`...)
	raw = jsonrpc.AppendString(append(raw, `,"_meta":{"`+call.MetaCode+`":`...), code)
	if pending := pendingDecision(err); pending != nil {
		raw = append(append(raw, `,"toolroom/status":"pending","toolroom/pending":`...), pending...)
	}
	return append(raw, "}}"...)
}

// pendingDecision returns the description of the decision that a call waits for, nil
// for other errors.
func pendingDecision(err error) json.RawMessage {
	var waits *call.PendingError
	if !errors.As(err, &waits) {
		return nil
	}
	raw, err := jsonrpc.Marshal(waits.Pending)
	if err != nil { // arguments that were decoded before
		return nil
	}
	return raw
}

// completeForClient adds the members that a modern client requires and a legacy server
// does not send: the result type, and for cacheable results the cache lifetime.
func completeForClient(result json.RawMessage, modern, cacheable bool) json.RawMessage {
	if !modern {
		return result
	}
	members, err := jsonrpc.Members(result)
	if err != nil {
		return result
	}
	add := []string{`"resultType":"complete"`}
	if cacheable && !requiresInput(result) {
		add = append(add, `"ttlMs":0`, `"cacheScope":"private"`)
	}
	for _, m := range members {
		add = slices.DeleteFunc(add, func(text string) bool { return strings.HasPrefix(text, `"`+m.Name+`":`) })
	}
	if len(add) == 0 {
		return result
	}
	// Append the members at the end, so that the bytes before them stay unchanged.
	end := bytes.LastIndexByte(result, '}')
	out := append(make([]byte, 0, len(result)+80), result[:end]...)
	if len(members) > 0 {
		out = append(out, ',')
	}
	return append(append(out, strings.Join(add, ",")...), result[end:]...)
}

// withURI returns a result of resources/read in which the server's own URI is replaced
// by the one that the client requested. Contents with other URIs, which are parts of
// the resource, stay unchanged.
func withURI(result json.RawMessage, original, requested string) json.RawMessage {
	var read struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if json.Unmarshal(result, &read) != nil {
		return result
	}
	changed := false
	for i, content := range read.Contents {
		var of struct {
			URI string `json:"uri"`
		}
		if json.Unmarshal(content, &of) != nil || of.URI != original {
			continue
		}
		if renamed, err := jsonrpc.SetMember(content, "uri", jsonrpc.AppendString(nil, requested)); err == nil {
			read.Contents[i], changed = renamed, true
		}
	}
	if !changed {
		return result
	}
	contents := []byte{'['}
	for i, content := range read.Contents {
		if i > 0 {
			contents = append(contents, ',')
		}
		contents = append(contents, content...)
	}
	if renamed, err := jsonrpc.SetMember(result, "contents", append(contents, ']')); err == nil {
		return renamed
	}
	return result
}

// structuredForLegacy converts a modern server's result for clients of legacy
// versions. There structuredContent must be an object; in the modern version it can be
// any value. Another value moves into the content, unless the server has put it there
// already.
func structuredForLegacy(result json.RawMessage) json.RawMessage {
	members, err := jsonrpc.Members(result)
	if err != nil {
		return result
	}
	var value json.RawMessage
	modern, empty := false, true
	for _, m := range members {
		switch {
		case m.Name == "resultType":
			modern = true
		case m.Name == "structuredContent" && m.Value[0] != '{':
			value = m.Value
		case m.Name == "content":
			empty = strings.Trim(string(m.Value), "[] \t\r\n") == ""
		}
	}
	if value == nil || !modern {
		return result
	}
	out := []byte{'{'}
	for _, m := range members {
		if m.Name == "structuredContent" || m.Name == "content" && empty {
			continue
		}
		out = append(append(append(jsonrpc.AppendString(out, m.Name), ':'), m.Value...), ',')
	}
	if empty {
		text := jsonrpc.AppendString([]byte(`[{"type":"text","text":`), string(value))
		out = append(append(append(out, `"content":`...), text...), "}],"...)
	}
	return append(bytes.TrimSuffix(out, []byte(",")), '}')
}

// checkHeaders returns an error if the arguments that a tool's schema marks with
// x-mcp-header differ from the request's headers, which modern clients send over HTTP.
func checkHeaders(x exchange, tool *call.Tool) error {
	h, ok := x.(*httpExchange)
	if !ok || !mcp.IsModernProtocol(h.header.Get(mcp.HeaderProtocolVersion)) ||
		!bytes.Contains(tool.Definition, []byte(`"x-mcp-header"`)) {
		return nil
	}
	var decoded mcp.Tool
	if json.Unmarshal(tool.Definition, &decoded) != nil {
		return nil // then no client can have sent headers for it
	}
	return mcp.ValidateParamHeadersLookup(func(name string) (string, bool) {
		values := h.header.Values(name)
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	}, &decoded, h.callParams)
}

// requiresInput reports whether a modern server's result asks the client for input
// (resultType input_required).
func requiresInput(result json.RawMessage) bool { return (&call.Result{Raw: result}).RequiresInput() }
