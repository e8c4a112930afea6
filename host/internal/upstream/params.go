package upstream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// callParams are the parameters of a tools/call, split.
type callParams struct {
	members []jsonrpc.Member
	meta    []jsonrpc.Member // of _meta
	token   json.RawMessage  // _meta.progressToken; nil: none
}

// rewrite says what changes in the parameters on their way to a server.
type rewrite struct {
	tool    string          // the server's own name of the tool; "": no tool's call
	id      json.RawMessage // of the request, which is also the progress token
	token   bool            // whether progress is asked for
	from    bool            // whether the caller speaks the modern version
	to      Era             // what the server speaks
	version string          // of the host
	caps    json.RawMessage // what the caller's client can do; nil: nothing
	level   string          // the least level of log messages; "": not said
}

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

// append writes the parameters for a server: its own name for the tool, an
// object for arguments (some servers refuse null), a progress token of this
// connection's, and the _meta of the server's era. All else is copied.
func (p callParams) append(dst []byte, r rewrite) []byte {
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
		case m.Name == "task" && r.tool != "": // the host does not route tasks/get
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

// eraPrefix begins the _meta members that say which version a request is in.
const eraPrefix = "io.modelcontextprotocol/"

// isEra reports whether a _meta member belongs to the connection the request
// came by, not to the call.
func isEra(name string) bool {
	switch rest, ok := strings.CutPrefix(name, eraPrefix); {
	case !ok:
		return false
	default:
		return rest == "protocolVersion" || rest == "clientInfo" || rest == "clientCapabilities" || rest == "logLevel"
	}
}

func (p callParams) appendMeta(dst []byte, r rewrite) []byte {
	add := func(name string, value json.RawMessage) {
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = appendMember(dst, name, value)
	}
	if r.to == Modern && !r.from {
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
		case isEra(m.Name) && (r.to != Modern || !r.from):
		case m.Name == eraPrefix+"clientCapabilities":
			add(m.Name, Routed(m.Value))
		default:
			add(m.Name, m.Value)
		}
	}
	if r.token {
		add("progressToken", r.id)
	}
	return dst
}

// modernMeta is what every modern request carries.
func modernMeta(version string, caps json.RawMessage) []jsonrpc.Member {
	info := clientInfo(version)
	who := jsonrpc.AppendString([]byte(`{"name":`), info["name"])
	who = append(jsonrpc.AppendString(append(who, `,"version":`...), info["version"]), '}')
	return []jsonrpc.Member{
		{Name: eraPrefix + "protocolVersion", Value: json.RawMessage(`"` + modernVersion + `"`)},
		{Name: eraPrefix + "clientInfo", Value: who},
		{Name: eraPrefix + "clientCapabilities", Value: Routed(caps)},
	}
}

// modernParams adds the modern _meta to params of the host's own, which are
// an object without _meta, or nil.
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

func appendMember(dst []byte, name string, value json.RawMessage) []byte {
	return append(append(jsonrpc.AppendString(dst, name), ':'), value...)
}

// progress passes a progress notification to the call it belongs to, with
// the caller's token in place of this connection's.
func (c *conn) progress(params json.RawMessage) {
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
			c.note(p, "notifications/progress", slices.Concat(params[:m.Start], p.token, params[m.End:]))
		}
		c.mu.Unlock()
		return
	}
}

// oneLine returns JSON without the line breaks it may have between tokens.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	// A valid JSON text has line breaks between tokens only, never inside.
	out := raw[:0:0]
	for _, b := range raw {
		if b != '\n' && b != '\r' {
			out = append(out, b)
		}
	}
	return out
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
