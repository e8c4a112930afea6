package upstream

import (
	"encoding/json"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// routedCapabilities lists what a client may declare to servers behind the host:
// the questions that the host passes on. Any other capability could have a
// server answer with something that the host cannot fetch, as a task with
// tasks/get.
var routedCapabilities = []string{"elicitation", "sampling", "roots"}

// routedExtensions need nothing of the host besides resources and calls.
var routedExtensions = []string{"io.modelcontextprotocol/ui"}

// Routed returns the capabilities of a client, or the extensions of a server,
// that reach the other side through the host. The result is an object.
func Routed(capabilities json.RawMessage) json.RawMessage {
	return keep(capabilities, func(name string, value json.RawMessage) json.RawMessage {
		switch {
		case slices.Contains(routedCapabilities, name):
			return value
		case name == "extensions":
			if extensions := RoutedExtensions(value); len(extensions) > len(`{}`) {
				return extensions
			}
		}
		return nil
	})
}

// RoutedExtensions returns those of some extensions that work through the host.
func RoutedExtensions(extensions json.RawMessage) json.RawMessage {
	return keep(extensions, func(name string, value json.RawMessage) json.RawMessage {
		if slices.Contains(routedExtensions, name) {
			return value
		}
		return nil
	})
}

// keep returns the members of an object for which part returns a value. What
// is no object becomes an empty one.
func keep(object json.RawMessage, part func(name string, value json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	members, err := jsonrpc.Members(object)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	for _, m := range members {
		value := part(m.Name, m.Value)
		if value == nil || isNull(m.Value) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendMember(out, m.Name, value)
	}
	return append(out, '}')
}

// Extensions returns the extensions that the running server declared and that
// work through the host: name → settings. It does not start the server.
func (s *Server) Extensions() map[string]any {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil || !c.alive() {
		return nil
	}
	var extensions map[string]any
	if json.Unmarshal(RoutedExtensions(c.offers["extensions"]), &extensions) != nil {
		return nil
	}
	return extensions
}
