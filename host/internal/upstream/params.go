package upstream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// callParams holds the parts of the params of tools/call.
type callParams struct {
	members []jsonrpc.Member
	meta    []jsonrpc.Member // members of _meta
	token   json.RawMessage  // _meta.progressToken; nil: none
}

// paramsRewrite holds the changes of params on their way to a server.
type paramsRewrite struct {
	tool       string          // the server's own name of the tool; "" for other requests than tools/call
	id         json.RawMessage // id of the request, also used as progress token
	token      bool            // the caller wants progress
	fromModern bool            // the caller uses the modern version
	era        Era             // era of the server
	version    string          // version of the host
	caps       json.RawMessage // capabilities of the caller's client; nil: none
	level      string          // minimum log level; "": not set
}

// parseCall splits the params of a request; empty params are {}. It returns an error if
// params or _meta is not an object.
func parseCall(params json.RawMessage) (callParams, error) {
	var p callParams
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	var err error
	if p.members, err = jsonrpc.Members(params); err != nil {
		return p, err
	}
	for _, m := range p.members {
		if m.Name != "_meta" || isNull(m.Value) {
			continue
		}
		if p.meta, err = jsonrpc.Members(m.Value); err != nil {
			return p, err
		}
		for _, m := range p.meta {
			if m.Name == "progressToken" && !isNull(m.Value) {
				p.token = m.Value
			}
		}
	}
	return p, nil
}

// appendFor appends the params for a server: its own name of the tool, an object for
// arguments (some servers reject null), a progress token of this connection, and the _meta
// of the server's era. Everything else is copied.
func (p callParams) appendFor(dst []byte, r paramsRewrite) []byte {
	dst = append(dst, '{')
	start := len(dst)
	add := func(name string, value json.RawMessage) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = appendMember(dst, name, value)
	}
	if r.tool != "" {
		dst = jsonrpc.AppendString(append(dst, `"name":`...), r.tool)
	}
	arguments := json.RawMessage(`{}`)
	for _, m := range p.members {
		switch {
		case m.Name == "_meta" || m.Name == "name" && r.tool != "":
		case m.Name == "task" && r.tool != "": // the host does not forward tasks/get
		case m.Name == "arguments" && r.tool != "":
			if !isNull(m.Value) {
				arguments = m.Value
			}
		default:
			add(m.Name, m.Value)
		}
	}
	if r.tool != "" {
		add("arguments", arguments)
	}
	if meta := p.appendMeta(nil, r); len(meta) > 0 {
		add("_meta", slices.Concat([]byte{'{'}, meta, []byte{'}'}))
	}
	return append(dst, '}')
}

// eraPrefix is the prefix of the _meta members that describe the protocol version of a
// request.
const eraPrefix = "io.modelcontextprotocol/"

// isEraMember reports whether a _meta member describes the caller's connection (its
// protocol version and so on) and so must not be copied to the server.
func isEraMember(name string) bool {
	switch rest, ok := strings.CutPrefix(name, eraPrefix); {
	case !ok:
		return false
	default:
		return rest == "protocolVersion" || rest == "clientInfo" || rest == "clientCapabilities" || rest == "logLevel"
	}
}

// appendMeta appends the members of _meta, without braces, for the server's era and with
// the changes of r.
func (p callParams) appendMeta(dst []byte, r paramsRewrite) []byte {
	add := func(name string, value json.RawMessage) {
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = appendMember(dst, name, value)
	}
	if r.era == Modern && !r.fromModern {
		for _, m := range modernMeta(r.version, r.caps) {
			add(m.Name, m.Value)
		}
		if r.level != "" {
			add(eraPrefix+"logLevel", jsonrpc.AppendString(nil, r.level))
		}
	}
	for _, m := range p.meta {
		switch {
		case m.Name == "progressToken":
		case isEraMember(m.Name) && (r.era != Modern || !r.fromModern):
		case m.Name == eraPrefix+"clientCapabilities":
			add(m.Name, RoutedCapabilities(m.Value))
		default:
			add(m.Name, m.Value)
		}
	}
	if r.token {
		add("progressToken", r.id)
	}
	return dst
}

// modernMeta returns the _meta members of every modern request.
func modernMeta(version string, caps json.RawMessage) []jsonrpc.Member {
	info := clientInfo(version)
	who := jsonrpc.AppendString([]byte(`{"name":`), info["name"])
	who = append(jsonrpc.AppendString(append(who, `,"version":`...), info["version"]), '}')
	return []jsonrpc.Member{
		{Name: eraPrefix + "protocolVersion", Value: json.RawMessage(`"` + modernVersion + `"`)},
		{Name: eraPrefix + "clientInfo", Value: who},
		{Name: eraPrefix + "clientCapabilities", Value: RoutedCapabilities(caps)},
	}
}

// modernParams adds the modern _meta to params of the host itself, which are an object
// without _meta, or nil.
func modernParams(params json.RawMessage, version string) json.RawMessage {
	out := []byte(`{"_meta":{`)
	for i, m := range modernMeta(version, nil) {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendMember(out, m.Name, m.Value)
	}
	out = append(out, '}')
	if rest := bytes.TrimPrefix(params, []byte("{")); len(rest) > 1 {
		return append(append(out, ','), rest...)
	}
	return append(out, '}')
}

// appendMember appends "name":value.
func appendMember(dst []byte, name string, value json.RawMessage) []byte {
	return append(append(jsonrpc.AppendString(dst, name), ':'), value...)
}

// forwardProgress passes a progress notification to its call, with the caller's token
// instead of this connection's.
func (c *conn) forwardProgress(params json.RawMessage) {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return
	}
	for _, m := range members {
		if m.Name != "progressToken" {
			continue
		}
		id, err := strconv.ParseUint(string(bytes.Trim(m.Value, `"`)), 10, 64)
		if err != nil {
			return
		}
		c.mu.Lock()
		if p := c.pending[id]; p != nil && p.token != nil {
			c.storeNotification(p, "notifications/progress", slices.Concat(params[:m.Start], p.token, params[m.End:]))
		}
		c.mu.Unlock()
		return
	}
}

// oneLine returns JSON without the line breaks between its tokens.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	// A valid JSON text has line breaks only between tokens.
	out := raw[:0:0]
	for _, b := range raw {
		if b != '\n' && b != '\r' {
			out = append(out, b)
		}
	}
	return out
}

// isNull reports whether a JSON value is missing or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
