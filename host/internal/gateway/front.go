package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// front is what the gateway reads of a request's params.
type front struct {
	method string
	params json.RawMessage
	name   string // of the tool or prompt, or the URI
	span   [2]int // where its value stands in params

	arguments json.RawMessage
	state     json.RawMessage // requestState; nil: none
	responses json.RawMessage // inputResponses; nil: none
	caps      json.RawMessage // of a modern client
	level     string          // of the log messages a modern client wants
}

// readFront reads params. The name is read exactly, and not at all when
// another reader could take another one.
func readFront(method string, params json.RawMessage) (front, error) {
	f := front{method: method, params: params}
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
			// Some servers read names without regard to case: what they would take
			// for arguments has to be what policy and approval have seen.
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

func (f *front) readName(named string, m jsonrpc.Member) error {
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
	f.span = [2]int{offset, offset + len(value)}
	return nil
}

func (f *front) readMeta(meta json.RawMessage) {
	members, err := jsonrpc.Members(meta)
	if err != nil {
		return // mcp-go has said so
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

// renamed is params with the server's own name in place of the served one.
func (f *front) renamed(original string) json.RawMessage {
	if original == f.name {
		return f.params
	}
	return slices.Concat(f.params[:f.span[0]], json.RawMessage(jsonrpc.AppendString(nil, original)), f.params[f.span[1]:])
}

// redirect makes a request for one tool the same for another.
func (f *front) redirect(name string, arguments json.RawMessage) error {
	params, err := jsonrpc.SetMember(f.renamed(name), "arguments", arguments)
	if err != nil {
		return err
	}
	other, err := readFront(f.method, params)
	if err == nil {
		*f = other
	}
	return err
}
