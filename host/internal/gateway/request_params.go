package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// requestParams holds the parts of a request's params that the gateway uses.
type requestParams struct {
	method   string
	params   json.RawMessage
	name     string // of the tool or prompt, or the URI
	nameSpan [2]int // position of the name's value in params

	arguments json.RawMessage
	state     json.RawMessage // requestState; nil: none
	responses json.RawMessage // inputResponses; nil: none
	caps      json.RawMessage // client capabilities of a modern client
	level     string          // log level that a modern client wants
}

// parseParams parses params. It returns an error if another parser could read another
// name, for example because of a duplicate member.
func parseParams(method string, params json.RawMessage) (requestParams, error) {
	f := requestParams{method: method, params: params}
	members, err := jsonrpc.Members(params)
	if err != nil {
		return f, fmt.Errorf("params of %s must be an object with a name: %w", method, err)
	}
	named := "name"
	switch method {
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		named = "uri"
	case "completion/complete":
		named = "ref"
	}
	for _, m := range members {
		switch m.Name {
		case named:
			if err := f.readName(named, m); err != nil {
				return f, err
			}
		case "arguments":
			f.arguments = m.Value
		case "requestState":
			f.state = m.Value
		case "inputResponses":
			f.responses = m.Value
		case "_meta":
			f.readMeta(m.Value)
		default:
			// Some servers match member names without regard to case. The arguments
			// that they would read must be the ones that policy and approval have
			// checked.
			for _, known := range [...]string{named, "arguments", "_meta", "requestState", "inputResponses", "task"} {
				if m.Name != known && strings.EqualFold(m.Name, known) {
					return f, fmt.Errorf("params of %s: member %s must be spelled %q", method, quoted(m.Name), known)
				}
			}
		}
	}
	if f.name == "" {
		return f, fmt.Errorf("params of %s: %q is missing", method, named)
	}
	return f, nil
}

// readName reads the name or URI of the request from the member m, called named, or from
// the ref of a completion. It returns an error for a wrong type, or a ref with neither.
func (f *requestParams) readName(named string, m jsonrpc.Member) error {
	value, offset := m.Value, m.Start
	if named == "ref" {
		members, err := jsonrpc.Members(m.Value)
		if err != nil {
			return errors.New("params of " + f.method + `: "ref" must be an object`)
		}
		i := slices.IndexFunc(members, func(m jsonrpc.Member) bool { return m.Name == "name" || m.Name == "uri" })
		if i < 0 {
			return errors.New("params of " + f.method + `: "ref" has neither name nor uri`)
		}
		value, offset = members[i].Value, m.Start+members[i].Start
	}
	if value[0] != '"' || json.Unmarshal(value, &f.name) != nil {
		return fmt.Errorf("params of %s: %q must be a string", f.method, named)
	}
	f.nameSpan = [2]int{offset, offset + len(value)}
	return nil
}

// readMeta reads the members of _meta that the gateway uses, and ignores wrong types.
func (f *requestParams) readMeta(meta json.RawMessage) {
	members, err := jsonrpc.Members(meta)
	if err != nil {
		return // mcp-go has reported it
	}
	for _, m := range members {
		switch m.Name {
		case "io.modelcontextprotocol/clientCapabilities":
			f.caps = m.Value
		case "io.modelcontextprotocol/logLevel":
			if json.Unmarshal(m.Value, &f.level) != nil {
				f.level = ""
			}
		}
	}
}

// withName returns params with the served name replaced by original, the server's own
// name.
func (f *requestParams) withName(original string) json.RawMessage {
	if original == f.name {
		return f.params
	}
	return slices.Concat(f.params[:f.nameSpan[0]], json.RawMessage(jsonrpc.AppendString(nil, original)), f.params[f.nameSpan[1]:])
}

// redirect replaces the name and the arguments of the request, in the fields and in params.
// If the arguments are invalid, it returns an error and changes nothing.
func (f *requestParams) redirect(name string, arguments json.RawMessage) error {
	params, err := jsonrpc.SetMember(f.withName(name), "arguments", arguments)
	if err != nil {
		return err
	}
	other, err := parseParams(f.method, params)
	if err == nil {
		*f = other
	}
	return err
}
