package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A Snapshot is the catalogue at one time. It is immutable.
type Snapshot struct {
	tools  []*call.Tool
	byName map[string]*call.Tool
	legacy json.RawMessage // the result of tools/list
	modern json.RawMessage
}

// Tools returns all tools in the order they are listed: servers as
// configured, and each server's own order. The caller must not change it.
func (s *Snapshot) Tools() []*call.Tool { return s.tools }

// ByName finds a tool by its served name.
func (s *Snapshot) ByName(name string) (*call.Tool, bool) {
	t, ok := s.byName[name]
	return t, ok
}

// List returns the result of tools/list, made once for all requests.
func (s *Snapshot) List(modern bool) json.RawMessage {
	if modern {
		return s.modern
	}
	return s.legacy
}

// newSnapshot puts the listings together. Of two tools with the same served
// name the first stays; the other is reported.
func newSnapshot(listings [][]*call.Tool, identity json.RawMessage) (*Snapshot, []error) {
	s := &Snapshot{byName: map[string]*call.Tool{}}
	var faults []error
	for _, tools := range listings {
		for _, t := range tools {
			if first, taken := s.byName[t.Name]; taken {
				faults = append(faults, fmt.Errorf("tool %s of server %s is not served: %s of server %s has the same name", t.Name, t.Server, first.Original, first.Server))
				continue
			}
			s.byName[t.Name] = t
			s.tools = append(s.tools, t)
		}
	}
	list := []byte(`{"tools":[`)
	for i, t := range s.tools {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, t.Definition...)
	}
	list = append(list, ']')
	s.legacy = append(slices.Clone(list), '}')
	// Always to be asked again, never to be shared between users.
	list = append(list, `,"ttlMs":0,"cacheScope":"private","resultType":"complete"`...)
	if identity != nil {
		list = append(append(append(list, `,"_meta":{"io.modelcontextprotocol/serverInfo":`...), identity...), '}')
	}
	s.modern = append(list, '}')
	return s, faults
}

// newTool makes the catalogue's entry from a server's definition, in which
// only the name is replaced.
func newTool(server Entry, definition json.RawMessage) (*call.Tool, error) {
	members, err := jsonrpc.Members(definition)
	if err != nil {
		return nil, fmt.Errorf("server %s: a tool's definition is malformed: %w", server.Source.Name(), err)
	}
	t := &call.Tool{Server: server.Source.Name(), TakesCode: true, Traits: traits(definition)}
	for _, m := range members {
		switch m.Name {
		case "name":
			if m.Value[0] != '"' || json.Unmarshal(m.Value, &t.Original) != nil || t.Original == "" {
				return nil, fmt.Errorf("server %s: a tool's name is %s, not a string", server.Source.Name(), m.Value)
			}
			t.Name = ServedName(server.Source.Name(), t.Original, server.Plain)
			if t.Name == t.Original {
				t.Definition = definition
				continue
			}
			t.Definition = slices.Concat(definition[:m.Start], json.RawMessage(jsonrpc.AppendString(nil, t.Name)), definition[m.End:])
		case "outputSchema":
			t.TakesCode = takesCode(m.Value)
		}
	}
	if t.Original == "" {
		return nil, fmt.Errorf("server %s: a tool has no name", server.Source.Name())
	}
	return t, nil
}

// takesCode reports whether an object with nothing but a code agrees with an
// output schema, as far as can be told without evaluating it.
func takesCode(schema json.RawMessage) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	members, err := jsonrpc.Members(schema)
	if err != nil {
		return false
	}
	for _, m := range members {
		switch m.Name {
		case "type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$comment", "$id", "$defs":
		default:
			return false // allOf, minProperties, … would have to be evaluated
		}
	}
	for _, name := range s.Required {
		if name != "code" {
			return false
		}
	}
	_, named := s.Properties["code"]
	return named || s.Additional == nil || string(s.Additional) == "true"
}
